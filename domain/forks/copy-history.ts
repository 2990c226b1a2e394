import { truncate } from '../../lib/truncate.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import { conflict } from '../kit/errors.ts'
import { newUuid } from '../kit/ids.ts'

/** Limits on a fork's history, which is copied in one transaction. */
const MAX_TURNS = 10_000
const MAX_EVENTS = 100_000

type Copied = { lastSequence: number; outputPreview: string | null; turns: { from: string[]; to: string[] } }

/** `upTo` is the sequence of the last turn's message. `withSecrets`: the values of secret arguments are copied, too. */
type Copy = { from: string; to: string; upTo: number; withSecrets: boolean }

/**
 * Copies the turns of a session, with their events, to a session without any. Sequences and times stay; turns, and with
 * them users' messages and results, get new ids. The copies cost nothing, and nobody is told of them. Events that
 * retention would delete are left out. Throws `conflict` beyond the limits.
 */
export async function copyHistory(db: Prisma.TransactionClient, copy: Copy): Promise<Copied> {
  const found = await db.turn.findMany({
    where: { sessionId: copy.from, inputSequence: { lte: copy.upTo } },
    orderBy: { inputSequence: 'asc' },
    take: MAX_TURNS + 1,
    select: { id: true },
  })
  if (found.length > MAX_TURNS) throw tooLong(`${MAX_TURNS} turns`)
  const turns = { from: found.map(({ id }) => id), to: found.map(() => newUuid()) }
  await copyTurns(db, copy, turns)
  const { count, lastSequence } = await copyEvents(db, copy, turns)
  if (count > MAX_EVENTS) throw tooLong(`${MAX_EVENTS} events`)
  await copyWords(db, copy)
  return { turns, lastSequence, outputPreview: await readOutputPreview(db, copy.to) }
}

const tooLong = (limit: string) =>
  conflict(`A fork copies at most ${limit}, and the history up to there has more; fork at an earlier message`)

type Turns = Copied['turns']

const copyTurns = (db: Prisma.TransactionClient, { to }: Copy, turns: Turns) => db.$executeRaw`
  INSERT INTO turns (
    id, organization_id, session_id, agent_id, agent_version, user_id, api_key_id, input_sequence, input_preview, controls, output_schema,
    output, status, iterations, error, error_code, finish_reason, created_at, started_at, finished_at, deltas_deleted, is_copy
  )
  SELECT copy.id, t.organization_id, ${to}::uuid, t.agent_id, t.agent_version, t.user_id, t.api_key_id, t.input_sequence,
    t.input_preview, t.controls, t.output_schema, t.output, t.status, t.iterations, t.error, t.error_code, t.finish_reason, t.created_at, t.started_at,
    t.finished_at, true, true
  FROM unnest(${turns.from}::uuid[], ${turns.to}::uuid[]) AS copy (of, id) JOIN turns t ON t.id = copy.of`

/** An event names only its own turn, and the turn's message. */
async function copyEvents(db: Prisma.TransactionClient, { from, to, withSecrets }: Copy, turns: Turns) {
  await db.$queryRaw`SELECT set_config('agent_sessions.copies', 'on', true)`
  const [copied] = await db.$queryRaw<{ count: number; lastSequence: number }[]>`
    WITH copied AS (
      INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
      SELECT ${to}::uuid, e.sequence, e.type, e.ts, copy.id, e.step, e.exec_id,
        CASE WHEN e.type = 'input.message' AND e.step = '' THEN jsonb_set(named.data, '{message,id}', to_jsonb('message_' || copy.hex))
          ELSE named.data
            || CASE WHEN named.data ? 'turn_id' THEN jsonb_build_object('turn_id', 'turn_' || copy.hex) ELSE '{}' END
            || CASE WHEN named.data ? 'input_message_id'
              THEN jsonb_build_object('input_message_id', 'message_' || copy.hex) ELSE '{}' END
        END
      FROM events e
      JOIN (
        SELECT of, id, replace(id::text, '-', '') AS hex
        FROM unnest(${turns.from}::uuid[], ${turns.to}::uuid[]) AS t (of, id)
      ) AS copy ON copy.of = e.turn_id
      CROSS JOIN LATERAL (
        SELECT CASE WHEN ${withSecrets} THEN e.data ELSE e.data - 'secret_tokens' END AS data
      ) AS named
      WHERE e.session_id = ${from}::uuid AND e.sequence <= (
        SELECT max(sequence) FROM events WHERE turn_id = ${turns.from.at(-1)}::uuid
          AND type NOT IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta')
      ) AND e.type NOT IN ('output.message.delta', 'reason.thinking.delta', 'tool.progress')
      LIMIT ${MAX_EVENTS + 1}
      RETURNING sequence
    )
    SELECT count(*)::int AS count, max(sequence) AS "lastSequence" FROM copied`
  return copied ?? { count: 0, lastSequence: 0 }
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
