import type { Deps } from '../deps.ts'

/** Counts the enabled schedules that target each session. Sessions without any are absent from the result. */
export async function countActiveSchedules(_deps: Deps, _sessionIds: string[]): Promise<Map<string, number>> {
  // There are no schedules yet.
  return new Map()
}
