import { truncate } from '../../lib/truncate.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import { conflict } from '../kit/errors.ts'
import { newUuid } from '../kit/ids.ts'

/** Limits on a fork's history, which is copied in one transaction. Bytes are counted as they are stored. */
const MAX_TURNS = 10_000
const MAX_EVENTS = 100_000
const MAX_MIB = 256

type Turns = { from: string[]; to: string[] }
type Copied = { lastSequence: number; outputPreview: string | null; turns: Turns }

/** `upTo` is the sequence of the last turn's message. `withSecrets`: the values of secret arguments are copied, too. */
type Copy = { from: string; to: string; upTo: number; withSecrets: boolean }

/**
 * Copies the events of a session's turns to a session that need not exist yet, and gives its turns ids, for copyTurns.
 * Sequences and times stay; turns, and with them users' messages and results, get new ids. The copies cost nothing, and
 * nobody is told of them. Events that retention would delete are left out. Throws `conflict` beyond the limits, and
 * for an unfinished turn, which would run twice.
 */
export async function copyHistory(db: Prisma.TransactionClient, copy: Copy): Promise<Copied> {
  const found = await db.turn.findMany({
    where: { sessionId: copy.from, inputSequence: { lte: copy.upTo } },
    orderBy: { inputSequence: 'asc' },
    take: MAX_TURNS + 1,
    select: { id: true, finishedAt: true },
  })
  if (found.length > MAX_TURNS) throw tooLong(`${MAX_TURNS} turns`)
  if (found.some(({ finishedAt }) => finishedAt === null)) throw conflict('A turn that would be copied is not finished')
  const turns = { from: found.map(({ id }) => id), to: found.map(() => newUuid()) }
  const lastSequence = await measureEvents(db, copy, turns)
  await copyEvents(db, copy, turns, lastSequence)
  await copyWords(db, copy)
  return { turns, lastSequence, outputPreview: await readOutputPreview(db, copy.to) }
}

const tooLong = (limit: string) =>
  conflict(`A fork copies at most ${limit}, and the history up to there has more; fork at an earlier message`)

/** Inserts copies of turns into a session. */
export const copyTurns = (db: Prisma.TransactionClient, to: string, turns: Turns) => db.$executeRaw`
  INSERT INTO turns (
    id, organization_id, session_id, agent_id, agent_version, user_id, api_key_id, input_sequence, input_preview, controls, output_schema,
    output, status, iterations, error, error_code, finish_reason, created_at, started_at, finished_at, takeovers, deltas_deleted, is_copy
  )
  SELECT copy.id, t.organization_id, ${to}::uuid, t.agent_id, t.agent_version, t.user_id, t.api_key_id, t.input_sequence,
    t.input_preview, t.controls, t.output_schema, t.output, t.status, t.iterations, t.error, t.error_code, t.finish_reason, t.created_at, t.started_at,
    t.finished_at, t.takeovers, true, true
  FROM unnest(${turns.from}::uuid[], ${turns.to}::uuid[]) AS copy (of, id) JOIN turns t ON t.id = copy.of`

const COPIED_TYPES = Prisma.sql`e.type NOT IN ('output.message.delta', 'reason.thinking.delta', 'tool.progress')`

/**
 * Returns the last sequence of the turns' events. The turn that was accepted last need not end last: it may be cancelled
 * while it is queued. Reads no data. Throws `conflict` beyond the limits.
 */
async function measureEvents(db: Prisma.TransactionClient, { from }: Copy, turns: Turns): Promise<number> {
  const [measured] = await db.$queryRaw<{ count: number; mib: number; last: number }[]>`
    SELECT count(*)::int AS count, (coalesce(sum(size), 0) / 1048576)::float8 AS mib, coalesce(max(sequence), 0) AS last FROM (
      SELECT e.sequence, pg_column_size(e.data) AS size FROM events e
      WHERE e.session_id = ${from}::uuid AND e.turn_id = ANY (${turns.from}::uuid[]) AND ${COPIED_TYPES}
        AND e.sequence <= (
          SELECT max(sequence) FROM events WHERE turn_id = ANY (${turns.from}::uuid[]) AND step = ''
            AND type IN ('turn.completed', 'turn.failed', 'turn.cancelled', 'session.idled')
        )
      LIMIT ${MAX_EVENTS + 1}
    ) AS e`
  const { count, mib, last } = measured ?? { count: 0, mib: 0, last: 0 }
  if (count > MAX_EVENTS) throw tooLong(`${MAX_EVENTS} events`)
  if (mib > MAX_MIB) throw tooLong(`${MAX_MIB} MiB of events`)
  return last
}

/** An event names only its own turn, and the turn's message; only a compaction names the messages of others. */
async function copyEvents(
  db: Prisma.TransactionClient,
  { from, to, withSecrets }: Copy,
  turns: Turns,
  lastSequence: number,
) {
  await db.$queryRaw`SELECT set_config('agent_sessions.copies', 'on', true)`
  await db.$executeRaw`
    WITH copies AS MATERIALIZED (
      SELECT of, id, replace(id::text, '-', '') AS hex FROM unnest(${turns.from}::uuid[], ${turns.to}::uuid[]) AS t (of, id)
    )
    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    SELECT ${to}::uuid, e.sequence, e.type, e.ts, copy.id, e.step, e.exec_id,
      CASE WHEN e.type = 'input.message' AND e.step = '' THEN jsonb_set(named.data, '{message,id}', to_jsonb('message_' || copy.hex))
        ELSE named.data
          || CASE WHEN named.data ? 'turn_id' THEN jsonb_build_object('turn_id', 'turn_' || copy.hex) ELSE '{}' END
          || CASE WHEN named.data ? 'input_message_id'
            THEN jsonb_build_object('input_message_id', 'message_' || copy.hex) ELSE '{}' END
          || CASE WHEN e.type = 'session.compacted' THEN jsonb_build_object('dropped', named.data -> 'dropped' || (
            SELECT coalesce(jsonb_object_agg(was.field, 'message_' || c.hex), '{}')
            FROM jsonb_each_text(named.data -> 'dropped') AS was (field, id)
            JOIN copies c ON 'message_' || replace(c.of::text, '-', '') = was.id
          )) ELSE '{}' END
      END
    FROM events e
    JOIN copies copy ON copy.of = e.turn_id
    CROSS JOIN LATERAL (
      SELECT CASE WHEN ${withSecrets} THEN e.data ELSE e.data - 'secret_tokens' END AS data
    ) AS named
    WHERE e.session_id = ${from}::uuid AND e.sequence <= ${lastSequence} AND ${COPIED_TYPES}`
}

const copyWords = (db: Prisma.TransactionClient, { from, to }: Copy) => db.$executeRaw`
  INSERT INTO session_texts (session_id, sequence, words)
  SELECT ${to}::uuid, x.sequence, x.words FROM session_texts x
  JOIN events e ON e.session_id = ${to}::uuid AND e.sequence = x.sequence
  WHERE x.session_id = ${from}::uuid AND x.sequence > 0
  ON CONFLICT DO NOTHING`

async function readOutputPreview(db: Prisma.TransactionClient, sessionId: string): Promise<string | null> {
  const [row] = await db.$queryRaw<{ text: string }[]>`
    SELECT message_text(data) AS text FROM events
    WHERE session_id = ${sessionId}::uuid AND type = 'output.message.completed' AND data @? '$.message.content[*] ? (@.type == "text")'
    ORDER BY sequence DESC LIMIT 1`
  return row === undefined ? null : truncate(row.text)
}
