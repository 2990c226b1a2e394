import { hostname } from 'node:os'

/** Name of this process for people: its id and its host. */
export const processName = `${process.pid}@${hostname()}`

/** Returns the name under which Temporal shows this process, whose number in the record is `number`. */
export const workerIdentity = (number: number): string => `${processName}/${number.toString(36)}`

/** Returns the number of the process that has a name in Temporal. Undefined for other workers. */
export function processIn(identity: string | null | undefined): number | undefined {
  const number = /\/([0-9a-z]+)$/.exec(identity ?? '')?.[1]
  return number === undefined ? undefined : Number.parseInt(number, 36)
}
