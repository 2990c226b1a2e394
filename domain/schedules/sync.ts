import type { Deps } from '../deps.ts'

/**
 * Brings the clock of a schedule up to what the record says, if it is due and no other process is at it. Never rejects:
 * the sweeper repeats what fails.
 */
export async function syncClock(_deps: Deps, _scheduleId: string): Promise<void> {
  throw new Error('to be written')
}
