import type { WireEvent } from '../contract/events.ts'
import { type CreateMessageRequest, type InputContentPart, type Message, textOf } from '../contract/messages.ts'
import type { TurnInput } from '../workflows/messages.ts'
import { checkModel } from './agents.ts'
import type { Deps, Scope } from './deps.ts'
import { invalid, notFound } from './errors.ts'
import { presentEvent, type StoredEvent } from './events/present.ts'
import { readMessages } from './events/read.ts'
import { publishEvents } from './events/relay.ts'
import { newUuid, toId, toUuid } from './ids.ts'
import { cut } from './preview.ts'
import { requireSession } from './sessions.ts'
import { nextTurn } from './turns/queue.ts'
import { startTurnSoon } from './turns/start.ts'

/** Pages of messages; throws `not_found` before the first. */
export async function listMessages(
  deps: Deps,
  scope: Scope,
  sessionId: string,
  page: { order: 'asc' | 'desc'; limit?: number | undefined; offset: number },
): Promise<AsyncGenerator<Message[]>> {
  const session = await requireSession(deps, scope, sessionId)
  return readMessages(deps, session.id, page)
}

export type AcceptedMessage = { message: Message; sessionUuid: string; turnUuid: string; sequence: number }

/**
 * Accepts a user's message: one transaction stores the event input.message and the turn that will answer it, then
 * the turn's workflow is started if the turn is the session's next. From the transaction on the message has a turn,
 * whatever becomes of Temporal or of this process.
 */
export async function createMessage(
  deps: Deps,
  scope: Scope,
  sessionId: string,
  input: CreateMessageRequest,
): Promise<AcceptedMessage> {
  checkParts(input)
  checkModel(deps, input.controls?.model_id, 'controls.model_id')
  const sessionUuid = toUuid(sessionId)
  const turnUuid = newUuid()
  const message = {
    id: toId('message', turnUuid),
    role: 'user',
    content: input.message.content,
    controls: input.controls ?? undefined,
    metadata: input.metadata ?? undefined,
    tags: input.tags ?? undefined,
  }
  const accepted = await insertMessage(deps, scope, sessionUuid, turnUuid, message)
  const event = presentEvent(deps.eventIds, accepted.event, {}) as WireEvent<'input.message'>
  publishEvents(deps, sessionUuid, turnUuid, [event])
  const turn = { organizationId: scope.organizationId, sessionId: sessionUuid, turnId: turnUuid }
  // Accepted is accepted: what fails from here on is the sweeper's to make good.
  startIfNext(deps, turn, accepted.busy).catch((error: Error) => {
    deps.log.warn({ err: error.message }, 'turn not started; the sweeper will')
  })
  return { message: event.data.message, sessionUuid, turnUuid, sequence: accepted.event.sequence }
}

/**
 * The statement saw the session either idle, then this turn is next, or busy. What it saw may be older than its lock:
 * a busy session may have gone idle, and another message may have come first. Then it is asked once more.
 */
async function startIfNext(deps: Deps, turn: TurnInput, busy: boolean): Promise<void> {
  if (!busy || (await nextTurn(deps, turn.sessionId)) === turn.turnId) startTurnSoon(deps, turn)
}

/**
 * One statement, so one transaction. Throws `not_found` when the organization has no such session. `busy` is decided
 * by what was there when the statement began; a gap between that and its own sequence shows that it had to wait.
 */
async function insertMessage(
  deps: Deps,
  scope: Scope,
  sessionId: string,
  turnId: string,
  message: Record<string, unknown> & { content: InputContentPart[]; controls?: unknown },
): Promise<{ event: StoredEvent; busy: boolean }> {
  const data = { message }
  const preview = cut(textOf(message.content))
  const controls = message.controls === undefined ? null : JSON.stringify(message.controls)
  const rows = await deps.db.$queryRaw<{ sequence: number; ts: Date; busy: boolean }[]>`
    WITH session AS (
      UPDATE sessions
      SET last_sequence = last_sequence + 1, preview = coalesce(preview, ${preview}), updated_at = now()
      WHERE id = ${sessionId}::uuid AND organization_id = ${scope.organizationId}::uuid
      RETURNING id, organization_id, last_sequence
    ), turn AS (
      INSERT INTO turns (id, organization_id, session_id, input_sequence, controls)
      SELECT ${turnId}::uuid, organization_id, id, last_sequence, ${controls}::jsonb FROM session
    ), event AS (
      INSERT INTO events (session_id, sequence, type, ts, turn_id, data)
      SELECT id, last_sequence, 'input.message', clock_timestamp(), ${turnId}::uuid, ${JSON.stringify(data)}::jsonb
      FROM session
      RETURNING sequence, ts
    )
    SELECT sequence, ts, EXISTS (
      SELECT FROM turns WHERE session_id = ${sessionId}::uuid AND finished_at IS NULL
    ) OR sequence <> (SELECT last_sequence + 1 FROM sessions WHERE id = ${sessionId}::uuid) AS busy
    FROM event`
  const row = rows[0]
  if (row === undefined) throw notFound('Session')
  const { sequence, ts, busy } = row
  return { event: { sessionId, sequence, type: 'input.message', ts, turnId, step: '', execId: null, data }, busy }
}

/** What the contract's types cannot say about a part. */
function checkParts(input: CreateMessageRequest): void {
  input.message.content.forEach((part, index) => {
    if (part.type !== 'image') return
    const field = `message.content.${index}`
    if (!part.url && !part.base64) throw invalid(`${field}: an image needs url, or base64 with media_type`)
    if (part.base64 && !part.media_type) throw invalid(`${field}.media_type: is needed with base64`)
    if (part.base64 && !/^[A-Za-z0-9+/]+={0,2}$/.test(part.base64)) throw invalid(`${field}.base64: is not base64`)
  })
}
