import { hostname } from 'node:os'

/** Returns the name under which Temporal shows this process, whose number in the record is `number`. */
export const workerIdentity = (number: number): string => `${process.pid}@${hostname()}/${number.toString(36)}`

/** Whether a worker with this name is the process with the number. */
export const runsIn = (number: number, identity: string | null | undefined): boolean =>
  identity?.endsWith(`/${number.toString(36)}`) === true
