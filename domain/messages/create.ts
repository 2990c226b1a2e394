import type { TurnBudget } from '../../contract/budgets.ts'
import type { WireEvent } from '../../contract/events.ts'
import type { ModelId, SessionId, TurnId } from '../../contract/kit/ids.ts'
import {
  type Controls,
  type CreateMessageRequest,
  type InputControls,
  type Message,
  StoredControls,
} from '../../contract/messages.ts'
import { Prisma, type TurnStatus } from '../../prisma/generated/client.ts'
import { requireModel } from '../agents/check.ts'
import { checkOutputSchema } from '../agents/output-schema.ts'
import { publishEvents } from '../events/live/live-stream.ts'
import { presentEvent, type StoredEvent } from '../events/log/present.ts'
import { steerStep } from '../events/log/steps.ts'
import { type LockedSession, withLockedSession } from '../events/log/transaction.ts'
import { type Actor, NO_USER } from '../kit/actor.ts'
import { createOnce } from '../kit/create-once.ts'
import { conflict, DomainError, noSession } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { asUuid, toId } from '../kit/ids.ts'
import { insertTurnBudget } from '../spending/budgets.ts'
import { type Cancelled, cancelUnfinished, notifyCancelled } from '../turns/control/cancel.ts'
import type { Deps } from '../turns/deps.ts'
import { nextTurn } from '../turns/queue.ts'
import { startTurnSoon } from '../turns/start.ts'
import { checkParts } from './check-parts.ts'
import {
  type Author,
  type InsertedMessage,
  insertMessage,
  MAX_QUEUED_TURNS,
  type MessagePlace,
  type NewMessage,
} from './insert.ts'
import { steerTurn } from './steer.ts'

/**
 * Message that has been accepted. It is stored with the Idempotency-Key of its request, so its fields cannot be
 * renamed.
 */
export type AcceptedMessage = { message: Message; sessionUuid: SessionId; turnUuid: TurnId; sequence: number }

/**
 * Accepts a user's message. One transaction stores the event input.message and the turn that will answer it. Then the
 * turn's workflow is started, if the turn is the session's next. From the commit on the message has a turn, even if
 * Temporal or this process fails. Throws `not_found`, `invalid` for an invalid part or an unusable model, `conflict`
 * for `on_busy: reject` while a turn is unfinished, and `too_many` when the queue is full. A turn with `ancestors` is
 * not started: its caller does that.
 */
export async function createMessage(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  input: CreateMessageRequest,
  attempt: CreationAttempt & { ancestors?: string[] } = {},
): Promise<AcceptedMessage> {
  const place = { organizationId: actor.organizationId, sessionId }
  const from = { author: authorOf(actor), ancestors: attempt.ancestors }
  return createOnce(attempt, {
    find: (turnId) => findAccepted(deps, { ...place, turnId: asUuid(turnId) }, input.on_busy),
    insert: (turnId) => acceptMessage(deps, { ...place, turnId: asUuid(turnId) }, from, input),
  })
}

export const authorOf = ({ userId, apiKeyId }: Actor): Author => ({
  userId: userId === NO_USER ? null : userId,
  apiKeyId,
})

/** Checks and stores a message. The turn's id lets only one run of a request succeed; any other throws. */
async function acceptMessage(
  deps: Deps,
  place: MessagePlace,
  from: Pick<NewMessage, 'author' | 'ancestors'>,
  input: CreateMessageRequest,
): Promise<AcceptedMessage> {
  checkParts(input.message.content, 'message.content')
  const modelId = await requireModel(deps, place, input.controls?.model_id, 'controls.model_id')
  await checkOutputSchema(deps, place, input.output_schema)
  const isCapped = deps.limits.maxRunningTurns !== undefined
  const message = { ...newMessage(place, input, modelId), ...from, traceparent: deps.tracing.traceparent(), isCapped }
  const policy = input.on_busy ?? 'enqueue'
  const isAlone = policy === 'enqueue' && input.budget == null
  const inserted = isAlone ? await enqueue(deps, message) : undefined
  return inserted ?? insertBusy(deps, message, policy, input.budget ?? undefined)
}

/** Finds a message that began a turn or, with `steer`, may have joined one. */
async function findAccepted(
  deps: Deps,
  place: MessagePlace,
  policy: CreateMessageRequest['on_busy'],
  db: Prisma.TransactionClient = deps.db,
): Promise<AcceptedMessage | undefined> {
  const { organizationId, sessionId, turnId } = place
  const began = Prisma.sql`e.session_id = t.session_id AND e.sequence = t.input_sequence AND t.id = ${turnId}::uuid`
  const joined = Prisma.sql`t.steer_sequence IS NOT NULL AND e.turn_id = t.id AND e.type = 'input.message' AND e.step = ${steerStep(turnId)}`
  const find = (condition: Prisma.Sql) => db.$queryRaw<StoredEvent[]>`
    SELECT e.session_id AS "sessionId", e.sequence, e.type, e.ts, e.turn_id AS "turnId", e.step, e.exec_id AS "execId", e.data
    FROM turns t JOIN events e ON ${condition}
    WHERE t.session_id = ${sessionId}::uuid AND t.organization_id = ${organizationId}::uuid`
  const [event] = await find(began)
  const [steer] = event === undefined && policy === 'steer' ? await find(joined) : []
  const found = event ?? steer
  return found && toAccepted({ sessionId, turnId: asUuid(found.turnId) }, [presentEvent(deps.events, found, {})])
}

/** Stores a message if the session is idle or the message may queue. Returns undefined in other cases. */
async function enqueue(deps: Deps, message: NewMessage): Promise<AcceptedMessage | undefined> {
  const place = deps.attempts.reserve(await deps.owners.ownerOf(message.organizationId))
  try {
    const inserted = await insertMessage(deps.db, { ...message, claim: place?.fence }, 'unless_waiting')
    if (inserted === undefined) return undefined
    const events = presentInserted(deps, inserted)
    publishEvents(deps, message.sessionId, message.turnId, events)
    // In a busy session, the end of the previous turn starts this one.
    const when = place === undefined ? undefined : inserted.isInLine ? 'early' : 'claimed'
    if (inserted.isNext) startTurnSoon(deps, { ...message, agentId: inserted.agentId }, when)
    return toAccepted(message, events)
  } finally {
    place?.release()
  }
}

const QUEUE_FULL = `${MAX_QUEUED_TURNS} messages of this session wait for their turns, which is the limit; try again later`

type BusyPolicy = NonNullable<CreateMessageRequest['on_busy']>

/**
 * Stores a message under the session's lock, because the decision about unfinished turns needs an unchanging record.
 */
async function insertBusy(
  deps: Deps,
  message: NewMessage,
  policy: BusyPolicy,
  budget: TurnBudget | undefined,
): Promise<AcceptedMessage> {
  const done = await withLockedSession(deps, message, async (session) => {
    const unfinished = await session.db.turn.findMany({
      where: { sessionId: session.id, finishedAt: null },
      orderBy: { inputSequence: 'asc' },
      take: MAX_QUEUED_TURNS,
      select: { id: true, status: true, controls: true, userId: true, apiKeyId: true },
    })
    const [head] = unfinished
    if (policy === 'steer') {
      // Another run of the request may have stored the message, under whichever turn ran then.
      const earlier = await findAccepted(deps, message, policy, session.db)
      if (earlier !== undefined) return earlier
      // A summary cannot be steered, nor a turn that acts for somebody else.
      const isOpen = head && isBy(head, message.author) && !StoredControls.safeParse(head.controls).data?.compact
      if (isOpen) return toAccepted({ ...message, turnId: asUuid(head.id) }, await steerTurn(session, head.id, message))
    }
    if (policy === 'reject' && head) {
      throw conflict(
        `${toId('turn', head.id)} is not finished; wait for its end, or post with on_busy "enqueue", "steer" or "interrupt"`,
        'session_busy',
      )
    }
    if ((policy === 'enqueue' || policy === 'steer') && unfinished.length >= MAX_QUEUED_TURNS) {
      throw new DomainError('too_many', QUEUE_FULL, { code: 'queue_full', retryAfterSeconds: 10 })
    }
    const cancelled = await cancelForBusyPolicy(session, head, policy)
    const inserted = await insertMessage(session.db, message, 'always')
    if (inserted === undefined) throw noSession()
    if (budget !== undefined) await insertTurnBudget(session.db, message, budget)
    const events = presentInserted(deps, inserted)
    session.publish(message.turnId, events)
    return { cancelled, events, agentId: session.agentId, next: await nextTurn(session.db, session.id) }
  })
  if (done === undefined) throw noSession()
  if ('message' in done) return done
  const { cancelled, events, agentId, next } = done
  const { organizationId, sessionId } = message
  notifyCancelled(deps, organizationId, cancelled)
  // The workflow of the call that asks starts its turn.
  if (next !== null && message.ancestors === undefined)
    startTurnSoon(deps, { organizationId, sessionId, agentId, turnId: next }, 'early')
  return toAccepted(message, events)
}

const isBy = (turn: Author, author: Author): boolean =>
  turn.userId === author.userId && turn.apiKeyId === author.apiKeyId

/** Cancels a turn that waits for its client, and all unfinished turns if the sender asks for it. */
async function cancelForBusyPolicy(
  session: LockedSession,
  head: { id: string; status: TurnStatus } | undefined,
  policy: BusyPolicy,
): Promise<Cancelled[]> {
  if (policy === 'interrupt') {
    return cancelUnfinished(session, { reason: 'interrupted by a new message', afterwards: 'goes_on' })
  }
  if (head?.status !== 'waiting') return []
  return cancelUnfinished(session, { turnIds: [head.id], reason: 'superseded by a new message', afterwards: 'goes_on' })
}

function newMessage(
  place: MessagePlace,
  input: CreateMessageRequest,
  modelId: ModelId | null | undefined,
): Omit<NewMessage, 'traceparent' | 'author' | 'isCapped' | 'ancestors'> {
  const { content } = input.message
  const controls = input.controls ? presentControls(input.controls, modelId) : undefined
  const message = {
    id: toId('message', place.turnId),
    role: 'user',
    content,
    controls,
    metadata: input.metadata ?? undefined,
    tags: input.tags ?? undefined,
  }
  const stored = controls === undefined ? null : JSON.stringify(controls)
  const outputSchema = input.output_schema == null ? null : JSON.stringify(input.output_schema)
  return { ...place, content, controls: stored, outputSchema, data: { message } }
}

const presentControls = ({ model: _, ...controls }: InputControls, modelId: ModelId | null | undefined): Controls => ({
  ...controls,
  model_id: modelId && toId('model', modelId),
})

export const presentInserted = (deps: Deps, { events }: InsertedMessage): WireEvent[] =>
  events.map((event) => presentEvent(deps.events, event, {}))

/** Makes the answer from the recorded events, which begin with the message. */
export function toAccepted(
  { sessionId, turnId }: Pick<MessagePlace, 'sessionId' | 'turnId'>,
  [event]: WireEvent[],
): AcceptedMessage {
  const { data, sequence } = event as WireEvent<'input.message'>
  return { message: data.message, sessionUuid: sessionId, turnUuid: turnId, sequence }
}
