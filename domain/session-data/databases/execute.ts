import { MAX_DATABASES } from '../../../contract/databases.ts'
import { storableJson } from '../../../lib/postgres-text.ts'
import { newUuid } from '../../kit/ids.ts'
import { type CallScope, WriterLost } from '../../kit/session-scope.ts'
import { waitForLocks } from '../../kit/wait-for-locks.ts'
import type { Deps } from '../deps.ts'
import { tooManyDatabases } from './create.ts'
import { resultOf } from './failure.ts'
import { pageSource } from './page-source.ts'
import { findDatabase } from './read.ts'
import type { ExecuteResult, Statement, Store } from './sqlite-runner/sqlite-runner.ts'

/** Time for running a script again after others have changed, deleted or created the database. */
const RETRY_LIMIT_MS = 30_000

/**
 * Runs a script on a database, and creates a missing one unless the script fails. The SQLite runner runs it again if
 * others have changed the database first. A database that is deleted meanwhile counts as missing.
 */
export async function executeScript(
  deps: Deps,
  scope: CallScope,
  name: string,
  script: Statement,
): Promise<ExecuteResult> {
  const until = performance.now() + RETRY_LIMIT_MS
  try {
    for (;;) {
      const ran = await runOnce(deps, scope, name, script)
      const mayPass = ran.outcome === 'conflict' || ran.outcome === 'gone'
      if (!mayPass || performance.now() > until) return resultOf(ran)
    }
  } catch (error) {
    if (error instanceof Repeated) return error.result
    throw error
  }
}

async function runOnce(deps: Deps, scope: CallScope, name: string, script: Statement) {
  const { organizationId, sessionId, signal } = scope
  const found = await findDatabase(deps, scope, name)
  const place = { organizationId, sessionId, databaseId: found?.id ?? newUuid() }
  const source = pageSource(deps, place, found ?? { version: 0, pageCount: 0 })
  const store = storeOf(deps, scope, place.databaseId, found === null ? name : undefined)
  const owner = await deps.owners.ownerOf(organizationId)
  return deps.sqliteRunner.execute(source, script, store, { owner }, signal)
}

type Answer =
  | { outcome: 'stored' | 'conflict' | 'gone' | 'exists' | 'too_many' | 'turn_ended' | 'fenced' | 'session_gone' }
  | { outcome: 'repeated'; effect: ExecuteResult }

/** Returns a function that stores the changes of a script. `name` is set for a new database. */
const storeOf =
  (deps: Deps, scope: CallScope, databaseId: string, name: string | undefined): Store =>
  async (changes, result) => {
    const { organizationId, sessionId, writer, signal } = scope
    const effect = JSON.stringify(storableJson(result))
    const call = { organizationId, sessionId, writer, databaseId, name, maxCount: MAX_DATABASES, ...changes, effect }
    // store_session_database returns this.
    const answer = (await waitForLocks(() => deps.databaseStore.store(call), 'The database is', signal)) as Answer
    switch (answer.outcome) {
      case 'stored':
      case 'conflict':
      case 'gone':
        return answer.outcome
      case 'exists':
        // Another call has created a database of this name.
        return 'gone'
      case 'too_many':
        throw tooManyDatabases()
      case 'repeated':
        throw new Repeated(answer.effect)
      default:
        throw new WriterLost(answer.outcome)
    }
  }

/** Signals that an earlier attempt of the call has stored its changes. */
class Repeated extends Error {
  readonly result: ExecuteResult
  constructor(result: ExecuteResult) {
    super('the call has been made before')
    this.result = result
  }
}
