import type { WireEvent } from '../../contract/events.ts'
import type { SessionId, TurnId } from '../../contract/ids.ts'
import {
  type Controls,
  type CreateMessageRequest,
  type InputContentPart,
  type InputControls,
  type Message,
  textOf,
} from '../../contract/messages.ts'
import { truncate } from '../../lib/truncate.ts'
import { Prisma, type TurnStatus } from '../../prisma/generated/client.ts'
import type { Actor } from '../actor.ts'
import { checkModel } from '../agents/check.ts'
import { createOnce } from '../create-once.ts'
import type { Deps } from '../deps.ts'
import { conflict, invalid, notFound, tooMany } from '../errors.ts'
import { publishEvents } from '../events/live-stream.ts'
import { presentEvent, type StoredEvent } from '../events/present.ts'
import { type LockedSession, withLockedSession } from '../events/transaction.ts'
import type { CreationAttempt } from '../idempotency-keys.ts'
import { asUuid, toId } from '../ids.ts'
import { type Cancelled, cancelUnfinished, tellCancelled } from '../turns/control/cancel.ts'
import { nextTurn } from '../turns/queue.ts'
import { startTurnSoon } from '../turns/start.ts'
import type { StartedTurn } from '../turns/turn-workflows.ts'

/**
 * Message that has been accepted. It is stored with the Idempotency-Key of its request, so its fields cannot be
 * renamed.
 */
export type AcceptedMessage = { message: Message; sessionUuid: SessionId; turnUuid: TurnId; sequence: number }

/**
 * Accepts a user's message. One transaction stores the event input.message and the turn that will answer it. Then the
 * turn's workflow is started, if the turn is the session's next. From the commit on the message has a turn, even if
 * Temporal or this process fails. Throws `not_found`, `invalid` for a part or a model that cannot work, `conflict` for
 * `on_busy: reject` while a turn is unfinished, and `too_many` when the queue is full.
 */
export async function createMessage(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  input: CreateMessageRequest,
  attempt: CreationAttempt = {},
): Promise<AcceptedMessage> {
  const place = { organizationId: actor.organizationId, sessionId }
  return createOnce(attempt, {
    find: (turnId) => findAccepted(deps, { ...place, turnId: asUuid(turnId) }),
    insert: (turnId) => acceptMessage(deps, newMessage({ ...place, turnId: asUuid(turnId) }, input), input),
  })
}

/** Checks and stores a message. The turn's id lets only one run of a request succeed; any other one throws. */
async function acceptMessage(deps: Deps, message: NewMessage, input: CreateMessageRequest): Promise<AcceptedMessage> {
  checkParts(input)
  checkModel(deps, input.controls?.model_id, 'controls.model_id')
  const policy = input.on_busy ?? 'enqueue'
  const inserted = policy === 'enqueue' ? await enqueue(deps, message) : undefined
  return inserted ?? insertBusy(deps, message, policy)
}

async function findAccepted(deps: Deps, place: MessagePlace): Promise<AcceptedMessage | undefined> {
  const { organizationId, sessionId, turnId } = place
  const [event] = await deps.db.$queryRaw<StoredEvent[]>`
    SELECT e.session_id AS "sessionId", e.sequence, e.type, e.ts, e.turn_id AS "turnId", e.step, e.exec_id AS "execId", e.data
    FROM turns t JOIN events e ON e.session_id = t.session_id AND e.sequence = t.input_sequence
    WHERE t.id = ${turnId}::uuid AND t.session_id = ${sessionId}::uuid AND t.organization_id = ${organizationId}::uuid`
  return event && toAccepted(place, presentInput(deps, event))
}

/**
 * Stores a message in the common case: the session is idle, or the message queues. Returns undefined when there is more
 * to decide.
 */
async function enqueue(deps: Deps, message: NewMessage): Promise<AcceptedMessage | undefined> {
  const inserted = await insertMessage(deps.db, message, 'unless_waiting')
  if (inserted === undefined) return undefined
  const event = presentInput(deps, inserted.event)
  publishEvents(deps, message.sessionId, message.turnId, [event])
  // The message has been accepted: the sweeper repairs whatever fails from here on.
  startIfNext(deps, { ...message, agentId: inserted.agentId }, inserted.busy).catch((error: Error) => {
    deps.log.warn({ err: error.message }, 'queue not read; the sweeper will start the turn')
  })
  return toAccepted(message, event)
}

/**
 * Starts the turn if it is the session's next. The statement saw the session either idle, so that this turn is next, or
 * busy. What it saw may be older than its lock: a busy session may have gone idle, and another message may have come
 * first. So a busy session is queried once more.
 */
async function startIfNext(deps: Deps, turn: StartedTurn, busy: boolean): Promise<void> {
  if (!busy || (await nextTurn(deps.db, turn.sessionId)) === turn.turnId) startTurnSoon(deps, turn)
}

type BusyPolicy = NonNullable<CreateMessageRequest['on_busy']>

/**
 * Stores a message under the session's lock, because the decision about unfinished turns needs a record that does not
 * change.
 */
async function insertBusy(deps: Deps, message: NewMessage, policy: BusyPolicy): Promise<AcceptedMessage> {
  const done = await withLockedSession(deps, message, async (session) => {
    const unfinished = await session.db.turn.findMany({
      where: { sessionId: session.id, finishedAt: null },
      orderBy: { inputSequence: 'asc' },
      take: MAX_QUEUED_TURNS,
      select: { id: true, status: true },
    })
    const [head] = unfinished
    if (policy === 'reject' && head) {
      throw conflict(
        `${toId('turn', head.id)} is not finished; wait for its end, or post with on_busy "enqueue" or "interrupt"`,
      )
    }
    if (policy === 'enqueue' && unfinished.length >= MAX_QUEUED_TURNS) {
      throw tooMany(`${MAX_QUEUED_TURNS} messages of this session wait for their turns`, 10)
    }
    const cancelled = await cancelForBusyPolicy(session, head, policy)
    const inserted = await insertMessage(session.db, message, 'always')
    if (inserted === undefined) throw notFound('Session')
    const event = presentInput(deps, inserted.event)
    session.publish(message.turnId, [event])
    return { cancelled, event, agentId: session.agentId, next: await nextTurn(session.db, session.id) }
  })
  if (done === undefined) throw notFound('Session')
  const { cancelled, event, agentId, next } = done
  tellCancelled(deps, cancelled)
  const { organizationId, sessionId } = message
  if (next !== null) startTurnSoon(deps, { organizationId, sessionId, agentId, turnId: next })
  return toAccepted(message, event)
}

/**
 * Cancels the turns that must not hold up the message: one that waits for its client, and others only when the sender
 * asks for it.
 */
async function cancelForBusyPolicy(
  session: LockedSession,
  head: { id: string; status: TurnStatus } | undefined,
  policy: BusyPolicy,
): Promise<Cancelled[]> {
  if (policy === 'interrupt') {
    return cancelUnfinished(session, { reason: 'interrupted by a new message', afterwards: 'goes_on' })
  }
  if (head?.status !== 'waiting') return []
  return cancelUnfinished(session, { turnId: head.id, reason: 'superseded by a new message', afterwards: 'goes_on' })
}

/** Maximum number of unfinished turns of a session. */
const MAX_QUEUED_TURNS = 1000

/** Ids of a message; the turn's uuid is the message's too. */
type MessagePlace = { organizationId: string; sessionId: SessionId; turnId: TurnId }
type NewMessage = MessagePlace & {
  content: InputContentPart[]
  controls: string | null
  data: { message: Record<string, unknown> }
}

function newMessage(place: MessagePlace, input: CreateMessageRequest): NewMessage {
  const { content } = input.message
  const controls = input.controls ? presentControls(input.controls) : undefined
  const message = {
    id: toId('message', place.turnId),
    role: 'user',
    content,
    controls,
    metadata: input.metadata ?? undefined,
    tags: input.tags ?? undefined,
  }
  const stored = controls === undefined ? null : JSON.stringify(controls)
  return { ...place, content, controls: stored, data: { message } }
}

const presentControls = (controls: InputControls): Controls => ({
  ...controls,
  model_id: controls.model_id && toId('model', controls.model_id),
})

const presentInput = (deps: Deps, event: StoredEvent) =>
  presentEvent(deps.events, event, {}) as WireEvent<'input.message'>

const toAccepted = ({ sessionId, turnId }: MessagePlace, event: WireEvent<'input.message'>): AcceptedMessage => ({
  message: event.data.message,
  sessionUuid: sessionId,
  turnUuid: turnId,
  sequence: event.sequence,
})

/**
 * Inserts a message and its turn in one statement, and so in one transaction. Returns undefined when the organization
 * has no such session; with `unless_waiting` also when the session waits for tool results or its queue is full. `busy`
 * reports what the statement saw when it began; a gap between that and its own sequence shows that it had to wait.
 */
async function insertMessage(
  db: Prisma.TransactionClient,
  { organizationId, sessionId, turnId, content, controls, data }: NewMessage,
  when: 'always' | 'unless_waiting',
): Promise<{ event: StoredEvent; agentId: string | null; busy: boolean } | undefined> {
  const preview = truncate(textOf(content))
  const condition =
    when === 'always'
      ? Prisma.empty
      : Prisma.sql`AND status <> 'waitingfortoolresults' AND ${MAX_QUEUED_TURNS} > (
          SELECT count(*) FROM (
            SELECT FROM turns WHERE session_id = ${sessionId}::uuid AND finished_at IS NULL LIMIT ${MAX_QUEUED_TURNS}
          ) AS unfinished)`
  const rows = await db.$queryRaw<{ sequence: number; ts: Date; agentId: string | null; busy: boolean }[]>`
    WITH session AS (
      UPDATE sessions
      SET last_sequence = last_sequence + 1, preview = coalesce(preview, ${preview}), updated_at = now()
      WHERE id = ${sessionId}::uuid AND organization_id = ${organizationId}::uuid ${condition}
      RETURNING id, organization_id, agent_id, last_sequence
    ), turn AS (
      INSERT INTO turns (id, organization_id, session_id, input_sequence, controls)
      SELECT ${turnId}::uuid, organization_id, id, last_sequence, ${controls}::jsonb FROM session
    ), event AS (
      INSERT INTO events (session_id, sequence, type, ts, turn_id, data)
      SELECT id, last_sequence, 'input.message', clock_timestamp(), ${turnId}::uuid, ${JSON.stringify(data)}::jsonb
      FROM session
      RETURNING sequence, ts
    )
    SELECT sequence, ts, (SELECT agent_id FROM session) AS "agentId", EXISTS (
      SELECT FROM turns WHERE session_id = ${sessionId}::uuid AND finished_at IS NULL
    ) OR sequence <> (SELECT last_sequence + 1 FROM sessions WHERE id = ${sessionId}::uuid) AS busy
    FROM event`
  const row = rows[0]
  if (row === undefined) return undefined
  const { sequence, ts, agentId, busy } = row
  const event: StoredEvent = { sessionId, sequence, type: 'input.message', ts, turnId, step: '', execId: null, data }
  return { event, agentId, busy }
}

/** Checks what the contract's types cannot express about a part. Throws `invalid`. */
function checkParts(input: CreateMessageRequest): void {
  input.message.content.forEach((part, index) => {
    if (part.type !== 'image') return
    const field = `message.content.${index}`
    if (!part.url && !part.base64) throw invalid(`${field}: an image needs url, or base64 with media_type`)
    if (part.base64 && !part.media_type) throw invalid(`${field}.media_type: is needed with base64`)
    if (part.base64 && !/^[A-Za-z0-9+/]+={0,2}$/.test(part.base64)) throw invalid(`${field}.base64: is not base64`)
  })
}
