import type { Database } from '../../../contract/databases.ts'
import type { SessionId } from '../../../contract/kit/ids.ts'
import type { SessionDatabase } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import type { All } from '../../kit/lists.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import { requireSession } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { presentDatabase } from './present.ts'

/** Session and name of a database, from a path. */
export type NamedDatabase = { session_id: SessionId; name: string }

/** Returns a database by its name, or null if it does not exist. */
export const findDatabase = (
  deps: Deps,
  { organizationId, sessionId }: SessionScope,
  name: string,
): Promise<SessionDatabase | null> =>
  deps.db.sessionDatabase.findFirst({ where: { name, sessionId, session: { organizationId } } })

/** Returns a database's row. Throws `not_found`. */
export async function requireDatabase(
  deps: Deps,
  actor: Actor,
  { session_id, name }: NamedDatabase,
): Promise<SessionDatabase> {
  const { id } = await requireSession(deps, actor, session_id)
  const row = await findDatabase(deps, { organizationId: actor.organizationId, sessionId: id }, name)
  if (row === null) throw notFound('Database')
  return row
}

/** Returns a database. Throws `not_found`. */
export const getDatabase = async (deps: Deps, actor: Actor, named: NamedDatabase): Promise<Database> =>
  presentDatabase(await requireDatabase(deps, actor, named))

/** Lists the databases of a session, newest first. Throws `not_found`. */
export async function listDatabases(deps: Deps, actor: Actor, sessionId: SessionId): Promise<All<Database>> {
  const { id } = await requireSession(deps, actor, sessionId)
  const rows = await deps.db.sessionDatabase.findMany({
    where: { sessionId: id, session: { organizationId: actor.organizationId } },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
  })
  return rows.map(presentDatabase)
}
