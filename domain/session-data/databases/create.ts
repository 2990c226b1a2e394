import { type Database, MAX_DATABASES } from '../../../contract/databases.ts'
import type { SessionDatabase } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { createOnce } from '../../kit/create-once.ts'
import { conflict, type DomainError, noSession, quotaExceeded } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { waitForLocks } from '../../kit/wait-for-locks.ts'
import type { Deps } from '../deps.ts'
import { presentDatabase } from './present.ts'
import type { NamedDatabase } from './read.ts'

type Answer = { outcome: 'created' | 'exists' | 'too_many' | 'session_gone' }

/** Error of a database beyond the limit. */
export const tooManyDatabases = (): DomainError =>
  quotaExceeded(`A session has at most ${MAX_DATABASES} databases; delete one first`)

/**
 * Creates an empty database, or returns the database of an earlier run. Throws `not_found`, and `conflict` when the
 * session has a database of this name, or too many.
 */
export async function createDatabase(
  deps: Deps,
  { organizationId }: Actor,
  { session_id, name }: NamedDatabase,
  attempt: CreationAttempt,
): Promise<Database> {
  const find = (id: string): Promise<SessionDatabase | null> =>
    deps.db.sessionDatabase.findFirst({ where: { id, sessionId: session_id, session: { organizationId } } })
  const row = await createOnce(attempt, {
    find,
    insert: async (databaseId) => {
      const place = { organizationId, sessionId: session_id, databaseId }
      const create = () => deps.databaseStore.create(place, name, MAX_DATABASES)
      // create_session_database returns this.
      const { outcome } = (await waitForLocks(create, 'The databases of the session are')) as Answer
      if (outcome === 'session_gone') throw noSession()
      if (outcome === 'too_many') throw tooManyDatabases()
      if (outcome === 'exists') throw conflict(`The session has a database ${name} already`)
      return find(databaseId)
    },
  })
  return presentDatabase(row)
}
