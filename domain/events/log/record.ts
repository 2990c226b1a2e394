import type { Prisma } from '../../../prisma/generated/client.ts'
import type { GroupCommit, Statements } from './group-commit.ts'

/**
 * Parameters of record_events. `events` is JSON; `step`, `fence` and `process` are null for a writer without an attempt.
 */
export type StoredAppend = {
  sessionId: string
  turnId: string
  step: string | null
  fence: number | null
  process: number | null
  events: string
}

/** Result of record_events. */
export type Recorded = {
  outcome: 'appended' | 'turn_ended' | 'not_next' | 'fenced' | 'session_gone'
  events?: [ordinal: number, sequence: number][]
  ts?: string
  claims?: number
  next_turn_id?: string | null
}

/** Records appends that may share a statement. */
export type AppendGroups = GroupCommit<StoredAppend, Recorded>

type Db = Pick<Prisma.TransactionClient, '$queryRaw'>

export async function recordAppend(db: Db, append: StoredAppend): Promise<Recorded> {
  const { sessionId, turnId, step, fence, process, events } = append
  const rows = await db.$queryRaw<{ result: Recorded }[]>`
    SELECT record_events(${sessionId}::uuid, ${turnId}::uuid, ${step}, ${fence}::bigint, ${events}::jsonb,
      ${process}::bigint) AS result`
  return rows[0]?.result ?? { outcome: 'session_gone' }
}

/**
 * Records appends of several sessions in one transaction. Returns undefined for each append whose session is locked or
 * gone. It never waits for a session's lock, so it cannot deadlock over them.
 */
export async function recordAppends(db: Db, appends: StoredAppend[]): Promise<(Recorded | undefined)[]> {
  const sessionIds = appends.map(({ sessionId }) => sessionId)
  const turnIds = appends.map(({ turnId }) => turnId)
  const steps = appends.map(({ step }) => step)
  const fences = appends.map(({ fence }) => fence)
  const processes = appends.map(({ process }) => process)
  const events = appends.map((append) => append.events)
  const rows = await db.$queryRaw<{ result: Recorded | null }[]>`
    WITH locked AS MATERIALIZED (
      SELECT id FROM sessions WHERE id = ANY (${sessionIds}::uuid[]) FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT CASE WHEN locked.id IS NOT NULL THEN
      record_events(append.session_id, append.turn_id, append.step, append.fence, append.events::jsonb,
        append.process)
    END AS result
    FROM unnest(${sessionIds}::uuid[], ${turnIds}::uuid[], ${steps}::text[], ${fences}::bigint[], ${events}::text[],
      ${processes}::bigint[]) WITH ORDINALITY AS append (session_id, turn_id, step, fence, events, process, place)
    LEFT JOIN locked ON locked.id = append.session_id
    ORDER BY append.place`
  return rows.map(({ result }) => result ?? undefined)
}

/** `unavailability` classifies errors after which the statement may have been committed or not. */
export const recordStatements = (
  db: Db,
  unavailability: (error: unknown) => string | undefined,
): Statements<StoredAppend, Recorded> => ({
  alone: (append) => recordAppend(db, append),
  together: (appends) => recordAppends(db, appends),
  hasRolledBack: (error) => unavailability(error) === undefined,
})
