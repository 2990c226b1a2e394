import type { Prisma } from '../../../prisma/generated/client.ts'

/** Execution whose attempt has begun, with its schedule. `attempts` counts this one, too. */
export type BegunExecution = Prisma.ScheduleExecutionGetPayload<{ include: { schedule: true } }>

/** Returns how many attempts before this one have neither failed nor ended the execution: their workers have died. */
export const lostAttempts = ({ attempts, settledAttempt }: BegunExecution): number => attempts - 1 - settledAttempt
