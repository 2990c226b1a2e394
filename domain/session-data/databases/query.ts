import type { DatabaseRows } from '../../../contract/databases.ts'
import type { Actor } from '../../kit/actor.ts'
import type { Deps } from '../deps.ts'
import { resultOf } from './failure.ts'
import { pageSource } from './page-source.ts'
import { type NamedDatabase, requireDatabase } from './read.ts'
import type { Statement } from './sqlite-runner/sqlite-runner.ts'

/** Runs a statement that only reads. Throws `not_found`, `too_many` and `unprocessable` (see `resultOf`). */
export async function queryDatabase(
  deps: Deps,
  actor: Actor,
  named: NamedDatabase,
  statement: Statement,
  signal: AbortSignal,
): Promise<DatabaseRows> {
  const { organizationId } = actor
  const { id, ...state } = await requireDatabase(deps, actor, named)
  const source = pageSource(deps, { organizationId, sessionId: named.session_id, databaseId: id }, state)
  const owner = await deps.owners.ownerOf(organizationId)
  return resultOf(await deps.sqliteRunner.query(source, statement, { owner }, signal))
}
