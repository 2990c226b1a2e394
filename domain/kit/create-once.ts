import type { CreationAttempt } from './idempotency-keys.ts'
import { newUuid } from './ids.ts'

type Creation<T> = {
  /** Finds the object that another run of the request created. The uuid is its id, or is stored with it. */
  find: (uuid: string) => Promise<T | null | undefined>
  /**
   * Inserts the row, or returns nothing if its id is taken. Throws when a limit is reached or the request is invalid.
   */
  insert: (uuid: string) => Promise<T | null | undefined>
}

/**
 * Returns the object that another run of the request created, possibly meanwhile, or else inserts it. Without an
 * Idempotency-Key there are no other runs, and it only inserts.
 */
export async function createOnce<T>(attempt: CreationAttempt, creation: Creation<T>): Promise<T> {
  const created = await findOrInsert(attempt, creation)
  if (created === undefined) throw new Error('A row was neither created nor found.')
  return created
}

/** Works like createOnce, but returns undefined when the id belongs to an object that no run of this request wrote. */
export async function findOrInsert<T>(
  { uuid, isFirst }: CreationAttempt,
  creation: Creation<T>,
): Promise<T | undefined> {
  const { find, insert } = creation
  if (uuid === undefined) return (await insert(newUuid())) ?? undefined
  const earlier = isFirst ? undefined : await find(uuid)
  if (earlier != null) return earlier
  try {
    const inserted = await insert(uuid)
    if (inserted != null) return inserted
  } catch (error) {
    // A concurrent run may have caused the error (a limit, a duplicate, a busy session), and then has the answer.
    const concurrent = await find(uuid)
    if (concurrent == null) throw error
    return concurrent
  }
  return (await find(uuid)) ?? undefined
}
