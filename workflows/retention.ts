import { deleteExpired } from './activities.ts'
import type { RetentionOutcome } from './messages.ts'

/** Deletes everything whose retention time is over, as one run of a schedule. Returns the counts. */
export async function retention(): Promise<RetentionOutcome> {
  return deleteExpired()
}
