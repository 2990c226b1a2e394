import type { Takeover } from 'agent-session-client'
import { durationOf } from './duration.ts'

/** Beginnings of sentences about the attempt before. */
const LOST: Record<Takeover['reason'], string> = {
  process_lost: 'Worker lost',
  process_stopped: 'Worker stopped',
  retried: 'Attempt lost',
}

/** Says in a line of its own how a turn went on, such as "Worker lost. worker-2 went on after 3.1 s." */
export function wentOn(takeover: Takeover): string {
  const { name, isHost } = takerOf(takeover)
  const subject = isHost ? name : `${name.charAt(0).toUpperCase()}${name.slice(1)}`
  return `${LOST[takeover.reason] ?? LOST.retried}. ${subject} went on after ${standstillOf(takeover)}.`
}

/** Says the same among other facts, such as "Worker lost, taken over by worker-2 after 3.1 s". */
export const takenOver = (takeover: Takeover): string =>
  `${LOST[takeover.reason] ?? LOST.retried}, taken over by ${takerOf(takeover).name} after ${standstillOf(takeover)}`

/**
 * Returns the longest of a turn's takeovers between the same two processes, because tools that ran at the same time tell
 * of the same event.
 */
export function byProcess(takeovers: Takeover[]): Takeover[] {
  const longest = new Map<string, Takeover>()
  for (const takeover of takeovers) {
    const key = [takeover.reason, takeover.from_process, takeover.to_process].join(' ')
    const other = longest.get(key)
    if (other === undefined || standstillMs(takeover) > standstillMs(other)) longest.set(key, takeover)
  }
  return [...longest.values()]
}

const standstillMs = ({ lost_at, taken_over_at }: Takeover): number =>
  Math.max(0, Date.parse(taken_over_at) - Date.parse(lost_at))

const standstillOf = (takeover: Takeover): string => durationOf(standstillMs(takeover))

/** Names the process that went on: by its host, and by its number where the host says nothing. */
function takerOf({ from_process, to_process }: Takeover): { name: string; isHost: boolean } {
  if (!to_process) return { name: 'another worker', isHost: false }
  if (to_process === from_process) return { name: 'the same worker', isHost: false }
  const [number, host] = partsOf(to_process)
  return host === partsOf(from_process ?? '')[1]
    ? { name: `process ${number}`, isHost: false }
    : { name: host, isHost: true }
}

/** Splits `<process id>@<host>`. */
function partsOf(process: string): [number: string, host: string] {
  const at = process.indexOf('@')
  return [process.slice(0, Math.max(at, 0)), process.slice(at + 1)]
}
