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
  /** The append is one piece of a text. Such appends of several sessions are recorded in one go. */
  isDelta: boolean
  events: string
}

/** Result of record_events. */
export type Recorded = {
  outcome: 'appended' | 'turn_ended' | 'not_next' | 'fenced' | 'steered' | 'session_gone'
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
 * Records appends of several sessions in one transaction. Returns undefined for each append that has to be recorded by
 * itself, such as one whose session is locked: it never waits for a session's lock, so it cannot deadlock over them.
 */
export async function recordAppends(db: Db, appends: StoredAppend[]): Promise<(Recorded | undefined)[]> {
  const rows = await db.$queryRaw<{ place: number; result: Recorded }[]>`
    SELECT place, result FROM record_appends(${`[${appends.map(toJson).join()}]`}::jsonb)`
  const results = new Map(rows.map(({ place, result }) => [place, result]))
  return appends.map((_, index) => results.get(index + 1))
}

/** Returns an append as record_appends takes it. Its events are JSON already. */
function toJson({ sessionId, turnId, step, fence, process, isDelta, events }: StoredAppend): string {
  const append = { session_id: sessionId, turn_id: turnId, step, fence, process, is_delta: isDelta }
  return `${JSON.stringify(append).slice(0, -1)},"events":${events}}`
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
