import type { SessionId, TurnId } from '../../contract/kit/ids.ts'
import { type InputContentPart, textOf } from '../../contract/messages.ts'
import { truncate } from '../../lib/truncate.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { StoredEvent } from '../events/log/present.ts'
import { reasonStep } from '../events/log/steps.ts'
import { toId } from '../kit/ids.ts'

/** Maximum number of unfinished turns of a session. */
export const MAX_QUEUED_TURNS = 1000

/** Ids of a message, whose uuid is its turn's. */
export type MessagePlace = { organizationId: string; sessionId: SessionId; turnId: TurnId }

/** The caller who posts a message. A schedule is not a user. */
export type Author = { userId: string | null; apiKeyId: string | null }

/**
 * Message to insert. `controls` and `outputSchema` are JSON, `traceparent` the place of its request in a trace. `claim` is the fence of an
 * attempt that begins the turn at once, and claims its first step, if the turn is next. `isCapped`: the number of the
 * organization's turns that run at once is limited.
 */
export type NewMessage = MessagePlace & {
  author: Author
  /** Turns above a child turn, the topmost first. */
  ancestors: string[] | undefined
  content: InputContentPart[]
  controls: string | null
  outputSchema: string | null
  data: { message: Record<string, unknown>; compaction?: true }
  traceparent: string | undefined
  claim?: number | undefined
  isCapped: boolean
}

/**
 * Events recorded for a message, input.message first. `isNext`: no other turn of the session is unfinished. `isInLine`: it
 * waits for a place among the turns that run at once, and its step is not claimed.
 */
export type InsertedMessage = { events: StoredEvent[]; agentId: string | null; isNext: boolean; isInLine: boolean }

type Row = Pick<StoredEvent, 'sequence' | 'type' | 'ts'> & {
  data: Record<string, unknown> | null
  agentId: string | null
  isNext: boolean
  isInLine: boolean
}

/**
 * Inserts a message and its turn in one statement, and so in one transaction. If no turn is unfinished, the same
 * transaction begins the session, should it be the first one, and makes it active. Returns undefined when the
 * organization has no such session; with `unless_waiting` also when the session waits for tool results or its queue is
 * full.
 *
 * The session's row is locked before its status is read. A session is active from the first unfinished turn to the end
 * of the last one.
 */
export async function insertMessage(
  db: Prisma.TransactionClient,
  {
    organizationId,
    sessionId,
    turnId,
    author,
    ancestors,
    content,
    controls,
    outputSchema,
    data,
    traceparent,
    claim = 0,
    isCapped,
  }: NewMessage,
  when: 'always' | 'unless_waiting',
): Promise<InsertedMessage | undefined> {
  const preview = truncate(textOf(content))
  const activated = { turn_id: toId('turn', turnId), input_message_id: toId('message', turnId) }
  const rows = await db.$queryRaw<Row[]>`
    WITH before AS (
      SELECT id, organization_id, agent_id, harness_id, model_id, last_sequence,
        coalesce(agent_version, (
          SELECT version FROM agents a WHERE a.organization_id = sessions.organization_id AND a.id = sessions.agent_id
        )) AS agent_version,
        status IN ('started', 'idle') AS is_next, status = 'started' AS begins,
        status IN ('started', 'idle') AND ${ancestors === undefined} AND (${isCapped} OR EXISTS (
          SELECT FROM agents a WHERE a.organization_id = sessions.organization_id AND a.id = sessions.agent_id
            AND a.limits -> 'max_running_turns' IS NOT NULL
        )) AS is_in_line
      FROM sessions
      WHERE id = ${sessionId}::uuid AND organization_id = ${organizationId}::uuid
        ${when === 'always' ? Prisma.empty : unlessWaiting(sessionId)}
      FOR NO KEY UPDATE
    ), session AS (
      UPDATE sessions s SET
        last_sequence = before.last_sequence + 1 + is_next::int + begins::int,
        status = CASE WHEN is_next THEN 'active' ELSE s.status END,
        started_at = CASE WHEN begins THEN clock_timestamp() ELSE s.started_at END,
        preview = coalesce(s.preview, ${preview}),
        updated_at = now()
      FROM before WHERE s.id = before.id
      RETURNING before.*, clock_timestamp() AS ts
    ), turn AS (
      INSERT INTO turns (
        id, organization_id, session_id, agent_id, agent_version, user_id, api_key_id, input_sequence, input_preview, controls, output_schema,
        traceparent, admission, ancestors
      )
      SELECT ${turnId}::uuid, organization_id, id, agent_id, agent_version, ${author.userId}::uuid, ${author.apiKeyId}::uuid,
        last_sequence + 1, ${preview}, ${controls}::jsonb,
        ${outputSchema}::json, ${traceparent ?? null},
        CASE WHEN is_in_line THEN 'waits' END::turn_admission, ${ancestors ?? null}::uuid[]
      FROM session
    ), claim AS (
      INSERT INTO turn_steps (turn_id, step, fence, claims, process)
      SELECT ${turnId}::uuid, ${reasonStep(1)}, ${claim}::bigint, 1, -${claim}::bigint FROM session
      WHERE is_next AND NOT is_in_line AND ${claim}::bigint < 0
    ), event AS (
      INSERT INTO events (session_id, sequence, type, ts, turn_id, data)
      SELECT id, last_sequence + new.place, new.type, ts, ${turnId}::uuid, new.data
      FROM session CROSS JOIN LATERAL (VALUES
        (true, 1, 'input.message', ${JSON.stringify(data)}::jsonb),
        (begins, 2, 'session.started', jsonb_build_object(
          'harness_id', 'harness_' || replace(harness_id::text, '-', ''),
          'agent_id', 'agent_' || replace(agent_id::text, '-', ''),
          'model_id', 'model_' || replace(model_id::text, '-', '')
        )),
        (is_next, 2 + begins::int, 'session.activated', ${JSON.stringify(activated)}::jsonb)
      ) AS new (happens, place, type, data)
      WHERE new.happens
      RETURNING sequence, type, ts, CASE WHEN type <> 'input.message' THEN data END AS data
    )
    SELECT event.*, agent_id AS "agentId", is_next AS "isNext", is_in_line AS "isInLine" FROM event CROSS JOIN session ORDER BY sequence`
  const [first] = rows
  if (first === undefined) return undefined
  const events = rows.map(({ sequence, type, ts, data: ofSession }): StoredEvent => {
    return { sessionId, sequence, type, ts, turnId, step: '', execId: null, data: ofSession ?? data }
  })
  return { events, agentId: first.agentId, isNext: first.isNext, isInLine: first.isInLine }
}

const unlessWaiting = (
  sessionId: SessionId,
) => Prisma.sql`AND status <> 'waitingfortoolresults' AND ${MAX_QUEUED_TURNS} > (
  SELECT count(*) FROM (
    SELECT FROM turns WHERE session_id = ${sessionId}::uuid AND finished_at IS NULL LIMIT ${MAX_QUEUED_TURNS}
  ) AS unfinished)`
