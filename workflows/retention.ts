import { deleteExpired } from './activities.ts'
import type { RetentionOutcome } from './messages.ts'

/** One run of the schedule that deletes what is kept for a time only; its result says how much that was. */
export async function retention(): Promise<RetentionOutcome> {
  return deleteExpired()
}
