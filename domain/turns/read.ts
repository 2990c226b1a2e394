import type { SessionId, TurnId } from '../../contract/kit/ids.ts'
import type { Turn } from '../../contract/turns.ts'
import { Prisma, type Turn as StoredTurn, type TurnStatus } from '../../prisma/generated/client.ts'
import { stepSql } from '../events/log/steps.ts'
import type { Actor } from '../kit/actor.ts'
import { notFound } from '../kit/errors.ts'
import { toId } from '../kit/ids.ts'
import { type PageStart, type Pages, pages } from '../kit/lists.ts'
import { requireSession } from '../kit/session-scope.ts'
import { presentCost, presentUsage } from '../kit/usage.ts'
import { pendingCalls, presentRequested, readAct } from './calls.ts'
import type { Deps } from './deps.ts'
import { type Family, readFamilies } from './family.ts'
import { findStalled } from './runs/stalled.ts'
import { presentTakeovers } from './takeovers.ts'

/** Row of a turn, without the schema that only its steps need. */
type TurnRow = Omit<StoredTurn, 'outputSchema'>
const omit = { outputSchema: true } as const

/** Turns read at once; one may have a large output or large calls. */
const TURNS_AT_ONCE = 20

/** Newest first. Throws `not_found`. */
export async function listTurns(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  { status, ...part }: { status?: TurnStatus | undefined; limit: number; offset: number },
): Promise<Pages<Turn>> {
  const session = await requireSession(deps, actor, sessionId)
  return pages({
    ...part,
    atOnce: TURNS_AT_ONCE,
    read: async ({ after, skip, take }: PageStart<TurnRow>) => {
      const rows = await deps.db.turn.findMany({
        omit,
        where: { sessionId: session.id, status, inputSequence: { lt: after?.inputSequence } },
        orderBy: { inputSequence: 'desc' },
        skip,
        take,
      })
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => presentTurns(deps, rows),
  })
}

/** Throws `not_found`. */
export async function getTurn(deps: Deps, actor: Actor, sessionId: SessionId, turnId: TurnId): Promise<Turn> {
  const row = await deps.db.turn.findFirst({
    omit,
    where: { id: turnId, sessionId, organizationId: actor.organizationId },
  })
  if (!row) throw notFound('Turn')
  return presentOne(deps, row)
}

/** Reads turns of an organization by their uuids. Unknown turns are missing from the result. */
export async function readTurns(deps: Deps, organizationId: string, ids: string[]): Promise<Map<string, Turn>> {
  const rows = await deps.db.turn.findMany({ omit, where: { id: { in: ids }, organizationId } })
  const turns = await presentTurns(deps, rows)
  return new Map(rows.map(({ id }, index) => [id, turns[index] as Turn]))
}

/**
 * Reads a session's last sequence, and then its oldest unfinished turn, which runs, waits for its client or is next.
 * Throws `not_found`.
 */
export async function readCurrentTurn(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
): Promise<{ lastSequence: number; turn: Turn | undefined }> {
  const { id, lastSequence } = await requireSession(deps, actor, sessionId)
  const row = await deps.db.turn.findFirst({
    omit,
    where: { sessionId: id, finishedAt: null },
    orderBy: { inputSequence: 'asc' },
  })
  return { lastSequence, turn: row === null ? undefined : await presentOne(deps, row) }
}

/** Counts the turns of all organizations that wait to ask a failed model again. */
export async function countRetryingTurns(deps: Deps): Promise<number> {
  const [row] = await deps.db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count
    FROM turns t JOIN turn_steps s ON s.turn_id = t.id AND s.step = ${stepSql.reason(Prisma.sql`t.iterations`)}
    WHERE t.finished_at IS NULL AND t.status = 'active' AND s.failures > 0 AND NOT EXISTS (
      SELECT FROM events e WHERE e.turn_id = t.id AND e.type = 'reason.completed' AND e.step = s.step
    )`
  return row?.count ?? 0
}

/** Reads the calls that the client has to answer. Only a waiting turn has any, and a session has at most one such. */
async function readPending(deps: Deps, { id, status }: TurnRow): Promise<Turn['pending_tool_calls']> {
  if (status !== 'waiting') return []
  const act = await readAct(deps.db, id)
  return act === undefined ? [] : pendingCalls(act).map(presentRequested)
}

async function presentTurns(deps: Deps, rows: TurnRow[]): Promise<Turn[]> {
  const [stalled, families] = await Promise.all([findStalled(deps, rows), readFamilies(deps, rows)])
  return Promise.all(
    rows.map(async (row) => presentTurn(row, stalled.has(row.id), await readPending(deps, row), families.get(row.id))),
  )
}

async function presentOne(deps: Deps, row: TurnRow): Promise<Turn> {
  const [stalled, pending, families] = await Promise.all([
    findStalled(deps, [row]),
    readPending(deps, row),
    readFamilies(deps, [row]),
  ])
  return presentTurn(row, stalled.has(row.id), pending, families.get(row.id))
}

const presentTurn = (
  row: TurnRow,
  stalled: boolean,
  pending_tool_calls: Turn['pending_tool_calls'],
  family: Family | undefined,
): Turn => ({
  id: toId('turn', row.id),
  session_id: toId('session', row.sessionId),
  agent_id: row.agentId && toId('agent', row.agentId),
  agent_version: row.agentVersion,
  user_id: row.userId,
  api_key_id: row.apiKeyId,
  status: row.status,
  stalled,
  input_message_id: toId('message', row.id),
  input_preview: row.inputPreview,
  iterations: row.iterations,
  usage: presentUsage(row),
  cost_usd: presentCost(row.costUsd),
  ...family,
  error: row.error,
  // Only these codes are stored.
  error_code: row.errorCode as Turn['error_code'],
  finish_reason: row.finishReason,
  output: row.output as Turn['output'],
  ...presentTakeovers(row.id, row.takeovers),
  workflow_id: toId('turn', row.id),
  pending_tool_calls,
  created_at: row.createdAt.toISOString(),
  started_at: row.startedAt?.toISOString() ?? null,
  finished_at: row.finishedAt?.toISOString() ?? null,
})
