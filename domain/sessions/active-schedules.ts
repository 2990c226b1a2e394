import type { Deps } from '../deps.ts'

/** Enabled schedules that target the session, for each uuid that has some. */
export async function countActiveSchedules(_deps: Deps, _sessionIds: string[]): Promise<Map<string, number>> {
  // There are no schedules yet.
  return new Map()
}
