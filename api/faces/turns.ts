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
import { conflict, DomainError } from '../../domain/kit/errors.ts'
import { type CreationAttempt, forgetKey, runOnce } from '../../domain/kit/idempotency-keys.ts'
import { createMessage } from '../../domain/messages/create.ts'
import { listMessages } from '../../domain/messages/list.ts'
import { cursorOf } from '../../domain/messages/wait.ts'
import { type ExternalSession, findSessionOf, sessionOf } from '../../domain/sessions/face-sessions.ts'
import { submitToolResults } from '../../domain/turns/control/client-calls.ts'
import { followTurn } from '../../domain/turns/events.ts'
import { getTurn, readCurrentTurn } from '../../domain/turns/read.ts'
import { parse } from '../http/parse.ts'
import { readIdempotencyKey } from '../http/read-request.ts'
import type { SseStreams } from '../http/sse.ts'
import { type Frame, type Translation, translate, UNUSED_TYPES } from './events.ts'

/**
 * Request that adds to a conversation. A client that repeats it has the same conversation, number of messages and last
 * message.
 */
export type Posted = {
  actor: Actor
  ctx: Context
  /** Names the conversation, with the face and the agent. */
  conversation: string[]
  messages: readonly unknown[]
  /**
   * Time after the end of its turn in which an equal request counts as repeated, in ms. Undefined: it never does,
   * without an Idempotency-Key.
   */
  graceMs?: number | undefined
}

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

/** Makes a message. Throws RequestError for content that a message cannot have. */
export const messageOf = (
  content: InputContentPart[],
  controls?: InputControls,
  output_schema?: Record<string, unknown>,
): CreateMessageRequest => parse(CreateMessageRequest, { message: { content }, controls, output_schema }, '')

/** Accepts a user's message. Throws as createMessage does. */
export async function acceptMessage(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  message: CreateMessageRequest,
  attempt: CreationAttempt,
): Promise<TurnPlace> {
  const accepted = await createMessage(deps, actor, sessionId, message, attempt)
  return { sessionId, turnId: accepted.turnUuid, after: cursorOf(accepted).after }
}

/**
 * Finds the turn of a message that is sent again because its client did not get the answer. Undefined if the message
 * has not arrived before. Throws `conflict` if the turn has ended.
 */
export async function findUnanswered(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
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
    // A message that joined a turn asks for none of its own.
    const found = page.find(({ role, turn_id }) => role === 'user' && turn_id == null)
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
  actor: Actor,
  sessionId: SessionId,
  answersTo: (pending: RequestedCall[]) => Results,
): Promise<TurnPlace> {
  const submit = async (): Promise<TurnPlace> => {
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
  return submit().catch((error: unknown) => {
    // Another request may have answered one of the calls meanwhile.
    if (!(error instanceof DomainError) || error.kind !== 'invalid') throw error
    return submit()
  })
}

/**
 * Accepts a request once: a repetition gets its turn again, as long as that runs and for a time after its end, or, with an
 * Idempotency-Key, as long as keys are kept. `isFound`: it finds the turn by the attempt.
 */
export async function acceptOnce(
  deps: Deps,
  { actor, ctx, conversation, messages, graceMs }: Posted,
  isFound: boolean,
  accept: (attempt: CreationAttempt) => Promise<TurnPlace>,
): Promise<TurnPlace> {
  const given = readIdempotencyKey(ctx)
  if (given === undefined && graceMs === undefined) return accept({})
  const request = [conversation, messages.length, messages.at(-1)]
  const hash = createHash('sha256').update(JSON.stringify(given === undefined ? request : [conversation, given]))
  const key = `face ${hash.digest('hex')}`
  let isFirst = false
  const run = () =>
    runOnce(deps, actor, { key, request, isFound }, (attempt) => {
      isFirst = attempt.isFirst === true
      return accept(attempt)
    })
  const place = await run()
  if (given !== undefined || isFirst || !(await isLongOver(deps, actor, place, graceMs ?? 0))) return place
  await forgetKey(deps, actor, key)
  return run()
}

/** Reports whether a turn has ended more than `graceMs` ago, or is gone. */
async function isLongOver(deps: Deps, actor: Actor, place: TurnPlace, graceMs: number): Promise<boolean> {
  try {
    const { finished_at } = await getTurn(deps, actor, place.sessionId, place.turnId)
    return finished_at != null && Date.now() - Date.parse(finished_at) > graceMs
  } catch (error) {
    if (error instanceof DomainError && error.code === 'not_found') return true
    throw error
  }
}

type TurnStream = {
  actor: Actor
  credential: Credential | undefined
  headers: Record<string, string>
  /** Finds or creates the turn to follow. It runs once the stream has a place. */
  open: () => Promise<TurnPlace>
  translationOf: (place: TurnPlace) => Translation<Frame>
}

/** Streams a turn in a face's frames, until it ends or waits for its client. */
export function serveTurn(deps: Deps, streams: SseStreams, ctx: Context, stream: TurnStream): Promise<void> {
  const headers = { ...stream.headers }
  return streams.serve(ctx, {
    organizationId: stream.actor.organizationId,
    credential: stream.credential,
    kind: 'turn',
    sessionId: undefined,
    foreign: headers,
    open: async (signal, onOverflow) => {
      const place = await stream.open()
      headers['X-Session-Id'] = toId('session', place.sessionId)
      return readTurn(deps, place, stream.translationOf(place), signal, onOverflow)
    },
  })
}

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
