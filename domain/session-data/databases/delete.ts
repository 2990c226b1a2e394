import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import { waitForLocks } from '../../kit/wait-for-locks.ts'
import type { Deps } from '../deps.ts'
import type { NamedDatabase } from './read.ts'

type Answer = { outcome: 'deleted'; id: string } | { outcome: 'missing' | 'session_gone' }

/** Deletes a database. A running script then has no effect. Throws `not_found`. */
export async function deleteDatabase(
  deps: Deps,
  { organizationId }: Actor,
  { session_id, name }: NamedDatabase,
): Promise<void> {
  const remove = () => deps.databaseStore.delete({ organizationId, sessionId: session_id }, name)
  // delete_session_database returns this.
  const answer = (await waitForLocks(remove, 'The database is')) as Answer
  if (answer.outcome !== 'deleted') throw notFound(answer.outcome === 'missing' ? 'Database' : 'Session')
  deps.sqliteRunner.forget(answer.id)
}
