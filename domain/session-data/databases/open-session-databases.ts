import type { Claim } from '../../../lib/fair-queue.ts'
import { DomainError } from '../../kit/errors.ts'
import type { CallScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { executeScript } from './execute.ts'
import { resultOf } from './failure.ts'
import { pageSource } from './page-source.ts'
import { findDatabase } from './read.ts'
import type { SessionDatabases } from './session-databases.ts'
import type { ExecuteResult, PageSource, Ran } from './sqlite-runner/sqlite-runner.ts'

/** Opens a session's databases for a tool call. */
export function openSessionDatabases(deps: Deps, scope: CallScope): SessionDatabases {
  const { signal } = scope
  const { sqliteRunner: runner } = deps
  return {
    query: (name, statement) =>
      readFrom(deps, scope, name, (source, claim) => runner.query(source, statement, claim, signal)),
    describe: (name) => readFrom(deps, scope, name, (source, claim) => runner.describe(source, claim, signal)),
    execute: async (name, script, { mayHaveRun }) => {
      const earlier = mayHaveRun ? await findEffect(deps, scope) : undefined
      return earlier ?? executeScript(deps, scope, name, script)
    },
  }
}

/** Runs a job on a database. Throws `not_found`, with the names of the existing ones. */
async function readFrom<Result>(
  deps: Deps,
  scope: CallScope,
  name: string,
  run: (source: PageSource, claim: Claim) => Promise<Ran<Result>>,
): Promise<Result> {
  const { organizationId, sessionId } = scope
  const found = await findDatabase(deps, scope, name)
  if (found === null) throw await noDatabase(deps, scope, name)
  const source = pageSource(deps, { organizationId, sessionId, databaseId: found.id }, found)
  const ran = await run(source, { owner: await deps.owners.ownerOf(organizationId) })
  if (ran.outcome === 'gone') throw await noDatabase(deps, scope, name)
  return resultOf(ran)
}

async function noDatabase(deps: Deps, { organizationId, sessionId }: CallScope, name: string): Promise<DomainError> {
  const where = { sessionId, session: { organizationId } }
  const rows = await deps.db.sessionDatabase.findMany({ where, select: { name: true }, orderBy: { name: 'asc' } })
  const names = rows.map((row) => row.name).join(', ')
  const hint = names === '' ? 'there is none yet: sql_execute makes one' : `there are ${names}`
  return new DomainError('not_found', `There is no database ${name}; ${hint}`)
}

/** Returns the answer of an earlier attempt that stored the call's changes. */
async function findEffect(deps: Deps, { organizationId, sessionId, writer }: CallScope) {
  const { turnId, step } = writer
  const row = await deps.db.turnStep.findFirst({ where: { turnId, step, turn: { sessionId, organizationId } } })
  // Only `executeScript` stores one for this call.
  return (row?.effect ?? undefined) as ExecuteResult | undefined
}
