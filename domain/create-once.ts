import type { CreationAttempt } from './idempotency-keys.ts'
import { newUuid } from './ids.ts'

type Creation<T> = {
  /** Finds what another run of the request has created; its uuid is the id of it, or stands beside it. */
  find: (uuid: string) => Promise<T | null | undefined>
  /** Inserts the row, or returns nothing when its id is taken. A limit or a mistake is thrown. */
  insert: (uuid: string) => Promise<T | null | undefined>
}

/**
 * Finds what an earlier run of the request has created, or inserts it, or finds what a concurrent run has inserted
 * meanwhile. Without an Idempotency-Key there are no other runs, and it only inserts.
 */
export async function createOnce<T>(attempt: CreationAttempt, creation: Creation<T>): Promise<T> {
  const created = await findOrInsert(attempt, creation)
  if (created === undefined) throw new Error('A row was neither created nor found.')
  return created
}

/** As createOnce, but undefined where the id is taken by something that no run of this request has written. */
export async function findOrInsert<T>({ uuid }: CreationAttempt, creation: Creation<T>): Promise<T | undefined> {
  const { find, insert } = creation
  if (uuid === undefined) return (await insert(newUuid())) ?? undefined
  const earlier = await find(uuid)
  if (earlier != null) return earlier
  try {
    const inserted = await insert(uuid)
    if (inserted != null) return inserted
  } catch (error) {
    // A limit, a duplicate or a busy session may be the work of a concurrent run, which then has the answer.
    const concurrent = await find(uuid)
    if (concurrent == null) throw error
    return concurrent
  }
  return (await find(uuid)) ?? undefined
}
