import type { Schema } from '../../../contract/databases.ts'
import type { Actor } from '../../kit/actor.ts'
import type { Deps } from '../deps.ts'
import { resultOf } from './failure.ts'
import { pageSource } from './page-source.ts'
import { type NamedDatabase, requireDatabase } from './read.ts'

/** Describes the tables of a database. Throws `not_found`, `too_many` and `unprocessable` (see `resultOf`). */
export async function getSchema(deps: Deps, actor: Actor, named: NamedDatabase, signal: AbortSignal): Promise<Schema> {
  const { organizationId } = actor
  const { id, ...state } = await requireDatabase(deps, actor, named)
  const source = pageSource(deps, { organizationId, sessionId: named.session_id, databaseId: id }, state)
  const ran = await deps.sqliteRunner.describe(source, { owner: await deps.owners.ownerOf(organizationId) }, signal)
  const { tables, truncated } = resultOf(ran)
  return { database: named.name, tables, ...(truncated ? { truncated } : {}) }
}
