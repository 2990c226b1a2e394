import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { type SessionId, TurnId, toId } from '../../contract/kit/ids.ts'
import {
  type ContentPart,
  CreateMessageRequest,
  type InputContentPart,
  type InputControls,
  type Message,
  textOf,
} from '../../contract/messages.ts'
import { type RequestedCall, SubmitToolResultsRequest } from '../../contract/turns.ts'
import { getAgent } from '../../domain/agents/read.ts'
import type { Deps } from '../../domain/deps.ts'
import type { Credential } from '../../domain/identity/auth/caller.ts'
import type { Actor } from '../../domain/kit/actor.ts'
import { conflict } from '../../domain/kit/errors.ts'
import { type CreationAttempt, runOnce } from '../../domain/kit/idempotency-keys.ts'
import { createMessage } from '../../domain/messages/create.ts'
import { listMessages } from '../../domain/messages/list.ts'
import { cursorOf } from '../../domain/messages/wait.ts'
import { type ExternalSession, findSessionOf, sessionOf } from '../../domain/sessions/face-sessions.ts'
import { submitToolResults } from '../../domain/turns/control/client-calls.ts'
import { followTurn } from '../../domain/turns/events.ts'
import { getTurn, readCurrentTurn } from '../../domain/turns/read.ts'
import { parse } from '../http/parse.ts'
import type { SseStreams } from '../http/sse.ts'
import { type Frame, type Translation, translate, UNUSED_TYPES } from './events.ts'

/** Time in which a repeated request of a client is recognised, in ms. */
const REPEATED_MS = 10 * 60_000

/** Request that adds to a session, as clients repeat it: with as many messages, and the same last one. */
export type Posted = { actor: Actor; sessionId: SessionId; messages: readonly unknown[]; ctx: Context }

/**
 * Place of a turn from which its client continues to read. `isWaiting`: it still waits for other answers, so there is
 * nothing to read yet. `approvals`: ids of the calls that waited for approval at this place. `answeredUntil`: sequence
 * up to which the turn's requests to its client have been answered, by default the place itself.
 */
export type TurnPlace = {
  sessionId: SessionId
  turnId: TurnId
  after: number
  isWaiting?: boolean
  approvals?: string[]
  answeredUntil?: number
}

/** Returns the session of a conversation, created on first use. Throws `not_found` for an unknown agent. */
export async function openSession(deps: Deps, actor: Actor, external: ExternalSession): Promise<SessionId> {
  const known = await findSessionOf(deps, actor, external)
  if (known !== undefined) return known
  await getAgent(deps, actor, external.agentId)
  return sessionOf(deps, actor, external)
}

/** Accepts a user's message. Throws as createMessage does, and RequestError for content that a message cannot have. */
export async function acceptMessage(
  deps: Deps,
  { actor, sessionId }: Posted,
  { content, controls }: { content: InputContentPart[]; controls?: InputControls },
  attempt: CreationAttempt,
): Promise<TurnPlace> {
  const input = parse(CreateMessageRequest, { message: { content }, controls }, '')
  const accepted = await createMessage(deps, actor, sessionId, input, attempt)
  return { sessionId, turnId: accepted.turnUuid, after: cursorOf(accepted).after }
}

/**
 * Finds the turn of a message that is sent again because its client did not get the answer. Undefined if the message
 * has not arrived before. Throws `conflict` if the turn has ended.
 */
export async function findUnanswered(
  deps: Deps,
  { actor, sessionId }: Posted,
  content: InputContentPart[],
): Promise<TurnPlace | undefined> {
  const { lastSequence, turn: current } = await readCurrentTurn(deps, actor, sessionId)
  const message = await newestQuestion(deps, actor, sessionId)
  if (message === undefined || !isSame(message.content, content)) return undefined
  const turnId = TurnId.parse(message.id.replace('message_', 'turn_'))
  const turn = await getTurn(deps, actor, sessionId, turnId)
  if (turn.finished_at != null) throw conflict(`An answer cannot be generated again; ${ASK_AGAIN}`)
  const after = message.sequence - 1
  const isWaiting = current?.id === turn.id && current.status === 'waiting'
  return { sessionId, turnId, after, answeredUntil: isWaiting ? after : lastSequence }
}

/** Way out for a client that wants a part of the history changed. */
export const ASK_AGAIN = 'send it as a new message, or start a new chat'

/** Number of messages among which the newest one of the user is looked for. */
const MAX_SEARCHED = 1000

async function newestQuestion(deps: Deps, actor: Actor, sessionId: SessionId): Promise<Message | undefined> {
  const newest = { order: 'desc', limit: MAX_SEARCHED, offset: 0 } as const
  for await (const page of await listMessages(deps, actor, sessionId, newest)) {
    const found = page.find(({ role }) => role === 'user')
    if (found !== undefined) return found
  }
  return undefined
}

const isSame = (one: ContentPart[], other: ContentPart[]): boolean =>
  one.length === other.length && textOf(one) === textOf(other)

type Results = SubmitToolResultsRequest['tool_results']

/** Accepts the answers that a client has for the calls that wait. Throws `conflict` if it has none. */
export async function acceptAnswers(
  deps: Deps,
  { actor, sessionId }: Posted,
  answersTo: (pending: RequestedCall[]) => Results,
): Promise<TurnPlace> {
  const { lastSequence: after, turn } = await readCurrentTurn(deps, actor, sessionId)
  const pending = turn?.pending_tool_calls ?? []
  const results = answersTo(pending)
  if (turn === undefined || results.length === 0) {
    throw conflict('The request has no answer to a call that waits for one', 'not_waiting')
  }
  const input = parse(SubmitToolResultsRequest, { tool_results: results }, '')
  const { status } = await submitToolResults(deps, actor, sessionId, input)
  const approvals = pending.filter(({ kind }) => kind === 'approval').map(({ id }) => id)
  return { sessionId, turnId: TurnId.parse(turn.id), after, isWaiting: status === 'waitingfortoolresults', approvals }
}

/**
 * Accepts a request once: a repetition, with the same Idempotency-Key or else the same messages, gets its turn again.
 * `isFound`: it finds the turn by the attempt.
 */
export function acceptOnce(
  deps: Deps,
  { actor, sessionId, messages, ctx }: Posted,
  isFound: boolean,
  accept: (attempt: CreationAttempt) => Promise<TurnPlace>,
): Promise<TurnPlace> {
  const last = createHash('sha256')
    .update(JSON.stringify(messages.at(-1)))
    .digest('hex')
  const given = ctx.get('Idempotency-Key').slice(0, 255)
  const key = `face ${sessionId} ${given === '' ? `${messages.length} ${last}` : given}`
  return runOnce(deps, actor, { key, request: [sessionId, last], keptMs: REPEATED_MS, isFound }, accept)
}

type TurnStream = {
  actor: Actor
  credential: Credential | undefined
  sessionId: SessionId
  headers: Record<string, string>
  /** Finds or creates the turn to follow. It runs once the stream has a place. */
  open: () => Promise<TurnPlace>
  translationOf: (place: TurnPlace) => Translation<Frame>
}

/** Streams a turn in a face's frames, until it ends or waits for its client. */
export const serveTurn = (deps: Deps, streams: SseStreams, ctx: Context, stream: TurnStream): Promise<void> =>
  streams.serve(ctx, {
    organizationId: stream.actor.organizationId,
    credential: stream.credential,
    kind: 'turn',
    sessionId: stream.sessionId,
    foreign: { ...stream.headers, 'X-Session-Id': toId('session', stream.sessionId) },
    open: async (signal, onOverflow) => {
      const place = await stream.open()
      return readTurn(deps, place, stream.translationOf(place), signal, onOverflow)
    },
  })

/** Yields the parts of a turn from its place on; only the end if the turn still waits. */
export function readTurn<Part>(
  deps: Deps,
  place: TurnPlace,
  translation: Translation<Part>,
  signal: AbortSignal,
  onOverflow?: () => void,
): AsyncGenerator<Part[], string> {
  if (place.isWaiting) return pauseAtOnce(translation)
  return translate(followTurn(deps, place, { exclude: [...UNUSED_TYPES] }, signal, onOverflow), translation)
}

async function* pauseAtOnce<Part>(translation: Translation<Part>): AsyncGenerator<Part[], string> {
  yield [...translation.begin(), ...translation.pause()]
  return 'end'
}
