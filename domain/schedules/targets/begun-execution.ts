import type { Prisma } from '../../../prisma/generated/client.ts'

/** Execution whose attempt has begun, with its schedule. `attempts` counts this one, too. */
export type BegunExecution = Prisma.ScheduleExecutionGetPayload<{ include: { schedule: true } }>

/** Returns the number of earlier attempts that were lost with their workers. */
export const lostAttempts = ({ attempts, settledAttempt }: BegunExecution): number => attempts - 1 - settledAttempt
