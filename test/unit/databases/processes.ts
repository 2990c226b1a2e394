import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Query without end, which needs no memory. */
export const ENDLESS = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c'

/** Message of the channel `child_process`. */
export type Forked = { process: ChildProcess }

/** Notes the processes that are started. */
export function watchProcesses(): { started: ChildProcess[]; stop(): void } {
  const started: ChildProcess[] = []
  const note = (message: unknown) => started.push((message as Forked).process)
  subscribe('child_process', note)
  return { started, stop: () => unsubscribe('child_process', note) }
}

export async function waitFor(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(5)
}

/** Fields of /proc/<id>/stat from the state on, or undefined when there is no such process. */
function statOf(id: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** A process that has ended may stay as a zombie (Z) where nobody asks for its result. */
export const isRunning = (id: number): boolean => !['Z', 'X', undefined].includes(statOf(id)?.[0])
/** Hundredths of a second that a process has computed. */
export const computedBy = (id: number): number => Number(statOf(id)?.[11] ?? 0)
