import { hostname } from 'node:os'

/** Name of this process for people: its id and its host. */
export const processName = `${process.pid}@${hostname()}`

/** Returns the name under which Temporal shows this process, whose number in the record is `number`. */
export const workerIdentity = (number: number): string => `${processName}/${number.toString(36)}`

/** Whether a worker with this name is the process with the number. */
export const runsIn = (number: number, identity: string | null | undefined): boolean =>
  identity?.endsWith(`/${number.toString(36)}`) === true
