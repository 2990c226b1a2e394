import type pg from 'pg'
import { fromId, newUuid } from '../domain/kit/ids.ts'
import { createSession, type OpenSession, openSession, runTurn } from './turn-client.ts'

const MESSAGES_PER_TURN = 2

/**
 * Creates a session of `messages` messages, of the user and the agent in turn, and opens its stream at its end. Two of
 * its turns are run; all others are copies of the rows of the second one, as it was recorded.
 */
export async function openLongSession(baseUrl: string, pool: pg.Pool, messages: number): Promise<OpenSession> {
  const session = await createSession(baseUrl)
  await runTurn(baseUrl, session)
  await runTurn(baseUrl, session)
  session.close()
  await copyLastTurn(pool, fromId(session.id), messages / MESSAGES_PER_TURN - session.turns.length)
  const answer = await fetch(`${baseUrl}/v1/sessions/${session.id}/events?types=session.idled`)
  const { data } = (await answer.json()) as { data: { id: string }[] }
  return openSession(baseUrl, session.id, { since: data.at(-1)?.id })
}

/** Copies all that is recorded of the session's last turn, with the ids and sequences of turns that came after it. */
async function copyLastTurn(pool: pg.Pool, sessionId: string, copies: number): Promise<void> {
  const { rows } = await pool.query<{ id: string; length: number }>(
    `SELECT turns.id, last_sequence + 1 - input_sequence AS length
    FROM turns JOIN sessions ON sessions.id = session_id WHERE session_id = $1 ORDER BY input_sequence DESC LIMIT 1`,
    [sessionId],
  )
  const [{ id, length } = { id: '', length: 0 }] = rows
  const ids = Array.from({ length: copies }, () => newUuid())
  await pool.query(COPY_TURN, [id, ids, length])
  await pool.query(COPY_STEPS, [id, ids])
  await pool.query(COPY_EVENTS, [id, ids, length])
  await pool.query('UPDATE sessions SET last_sequence = last_sequence + $2 WHERE id = $1', [sessionId, length * copies])
  await pool.query('ANALYZE turns, turn_steps, events')
}

// Rows are changed as JSON, so that they are copied whole whatever columns a table has.
const COPIES = 'unnest($2::uuid[]) WITH ORDINALITY AS copy (id, place)'
const COPY_TURN = `INSERT INTO turns
  SELECT (jsonb_populate_record(t, jsonb_build_object('id', copy.id, 'input_sequence',
    input_sequence + $3::integer * place))).*
  FROM turns t, ${COPIES} WHERE t.id = $1::uuid`
const COPY_STEPS = `INSERT INTO turn_steps
  SELECT (jsonb_populate_record(s, jsonb_build_object('turn_id', copy.id))).*
  FROM turn_steps s, ${COPIES} WHERE turn_id = $1::uuid`
const COPY_EVENTS = `INSERT INTO events
  SELECT (jsonb_populate_record(e, jsonb_build_object('turn_id', copy.id, 'sequence', sequence + $3::integer * place,
    'data', replace(data::text, replace($1::uuid::text, '-', ''), replace(copy.id::text, '-', ''))::jsonb))).*
  FROM events e, ${COPIES} WHERE turn_id = $1::uuid`
