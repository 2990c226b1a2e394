import type { CreationAttempt } from './idempotency-keys.ts'
import { newUuid } from './ids.ts'

type Creation<T> = {
  /** Finds what another run of the request has created. The uuid is its id, or is stored beside it. */
  find: (uuid: string) => Promise<T | null | undefined>
  /**
   * Inserts the row, or returns nothing when its id is taken. Throws when a limit is reached or the request is invalid.
   */
  insert: (uuid: string) => Promise<T | null | undefined>
}

/**
 * Returns what an earlier run of the request has created. Otherwise inserts it, or returns what a concurrent run has
 * inserted meanwhile. Without an Idempotency-Key there are no other runs, and it only inserts.
 */
export async function createOnce<T>(attempt: CreationAttempt, creation: Creation<T>): Promise<T> {
  const created = await findOrInsert(attempt, creation)
  if (created === undefined) throw new Error('A row was neither created nor found.')
  return created
}

/**
 * Works like createOnce, but returns undefined when the id is taken by something that no run of this request has
 * written.
 */
export async function findOrInsert<T>({ uuid }: CreationAttempt, creation: Creation<T>): Promise<T | undefined> {
  const { find, insert } = creation
  if (uuid === undefined) return (await insert(newUuid())) ?? undefined
  const earlier = await find(uuid)
  if (earlier != null) return earlier
  try {
    const inserted = await insert(uuid)
    if (inserted != null) return inserted
  } catch (error) {
    // A limit, a duplicate or a busy session may result from a concurrent run, which then has the answer.
    const concurrent = await find(uuid)
    if (concurrent == null) throw error
    return concurrent
  }
  return (await find(uuid)) ?? undefined
}
