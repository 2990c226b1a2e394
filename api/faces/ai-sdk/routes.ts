import { type AgentId, type SessionId, TurnId, toId } from '../../../contract/kit/ids.ts'
import type { Message } from '../../../contract/messages.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import { tooMany, unlessGone } from '../../../domain/kit/errors.ts'
import { listMessages } from '../../../domain/messages/list.ts'
import { findSessionOf } from '../../../domain/sessions/face-sessions.ts'
import { cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { readCurrentTurn } from '../../../domain/turns/read.ts'
import { createFairQueue } from '../../../lib/fair-queue.ts'
import { type Handle, reply } from '../../http/handle.ts'
import type { SseStreams } from '../../http/sse.ts'
import {
  acceptAnswers,
  acceptMessage,
  acceptOnce,
  findUnanswered,
  messageOf,
  openSession,
  serveTurn,
  type TurnPlace,
} from '../turns.ts'
import { chatEndpoints, type UIPart } from './endpoints.ts'
import { toUIMessages } from './history.ts'
import { answersTo, readIntent } from './request.ts'
import { createTranslation, type Version } from './translate.ts'

/** Time in which a repeated request is recognised after the end of its turn, in ms. Its messages have ids. */
const REPEATED_MS = 10 * 60_000
const HEADERS = { 'X-Vercel-AI-UI-Message-Stream': 'v1' }

type Style = { version: Version; text?: 'held' | 'streamed' | undefined; given?: UIPart[] }

const lastStepOf = (parts: UIPart[]): UIPart[] =>
  parts.slice(parts.findLastIndex(({ type }) => type === 'step-start') + 1)

/** Serves the AI SDK's `useChat`: a chat is a session, and its requests and streams are as DefaultChatTransport has them. */
export function aiSdkRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  const externalOf = (params: { agent_id: AgentId }, externalId: string) =>
    ({ face: 'ai-sdk', agentId: params.agent_id, externalId }) as const

  const histories = createFairQueue(HISTORIES_AT_ONCE, HISTORY_WAIT_MS)

  handle(chatEndpoints.send, async ({ actor, credential, params, query, body, ctx }) => {
    const intent = readIntent(body)
    const message = intent.kind === 'message' ? messageOf(intent.content) : undefined
    const answerParts = intent.kind === 'answers' ? intent.parts : []
    const external = externalOf(params, body.id)
    const conversation = [external.face, external.agentId, external.externalId]
    await serveTurn(deps, streams, ctx, {
      actor,
      credential,
      headers: HEADERS,
      open: async () => {
        const sessionId = await openSession(deps, actor, external)
        if (intent.kind === 'message' && intent.isSentAgain) {
          const found = await findUnanswered(deps, actor, sessionId, intent.content)
          if (found !== undefined) return found
        }
        const posted = { actor, ctx, conversation, messages: body.messages, graceMs: REPEATED_MS }
        return acceptOnce(deps, posted, message !== undefined, (attempt) =>
          message === undefined
            ? acceptAnswers(deps, actor, sessionId, (pending) => answersTo(pending, answerParts))
            : acceptMessage(deps, actor, sessionId, message, attempt),
        )
      },
      translationOf: translationIn({
        version: params.version,
        text: query.text,
        given: lastStepOf(answerParts),
      }),
    })
    return undefined
  })

  handle(chatEndpoints.resume, async ({ actor, credential, params, query, ctx }) => {
    const sessionId = await findSessionOf(deps, actor, externalOf(params, params.chat_id))
    if (sessionId === undefined) return reply(204, undefined)
    const { turn, lastSequence } = await readCurrentTurn(deps, actor, sessionId)
    // A turn that waits for its client has nothing to stream, and the history has all of it.
    if (turn === undefined || turn.status === 'waiting') return reply(204, undefined)
    const place = { sessionId, turnId: TurnId.parse(turn.id), after: 0, answeredUntil: lastSequence }
    await serveTurn(deps, streams, ctx, {
      actor,
      credential,
      headers: HEADERS,
      open: async () => place,
      translationOf: translationIn({ version: params.version, text: query.text }),
    })
    return undefined
  })

  handle(chatEndpoints.history, async ({ actor, params }) => {
    const sessionId = await findSessionOf(deps, actor, externalOf(params, params.chat_id))
    if (sessionId === undefined) return reply(200, [])
    const owner = await deps.owners.ownerOf(actor.organizationId)
    const read = async () => {
      const { turn } = await readCurrentTurn(deps, actor, sessionId)
      return toUIMessages(await readLatest(deps, actor, sessionId), turn, params.version)
    }
    return reply(200, await histories.run({ owner }, read, refuseHistory))
  })

  handle(chatEndpoints.stop, async ({ actor, params, body }) => {
    const sessionId = await findSessionOf(deps, actor, externalOf(params, params.chat_id))
    if (sessionId === undefined) return reply(204, undefined)
    const named = body.activeStreamId?.replace(/^msg_/, 'turn_')
    const { turn } = await readCurrentTurn(deps, actor, sessionId)
    const { data: turnId } = TurnId.safeParse(named ?? turn?.id)
    if (turnId !== undefined) await unlessGone(cancelTurns(deps, actor, sessionId, turnId).then(() => {}))
    return reply(204, undefined)
  })
}

const translationIn =
  ({ version, text, given }: Style) =>
  ({ turnId, after, approvals, answeredUntil = after }: TurnPlace) =>
    createTranslation({
      turnId: toId('turn', turnId),
      version,
      holdsText: version === '7' ? text === 'held' : text !== 'streamed',
      answeredUntil,
      approvals,
      given,
    })

/** Histories that are made at once: each is in memory as a whole. */
const HISTORIES_AT_ONCE = 4
const HISTORY_WAIT_MS = 20_000

function refuseHistory(): never {
  throw tooMany('Too many histories are read at once; try again', 2)
}

const MAX_MESSAGES = 1000
const MAX_CHARACTERS = 8 * 1024 * 1024

/** Reads the latest messages of a session, within limits, oldest first. They begin with a user's message. */
async function readLatest(deps: Deps, actor: Actor, sessionId: SessionId): Promise<Message[]> {
  const latest: Message[] = []
  let characters = 0
  for await (const page of await listMessages(deps, actor, sessionId, {
    order: 'desc',
    limit: MAX_MESSAGES,
    offset: 0,
  })) {
    latest.push(...page)
    characters += JSON.stringify(page).length
    if (characters > MAX_CHARACTERS) break
  }
  const messages = latest.reverse()
  // A turn may be larger than all that is read.
  return messages.slice(
    Math.max(
      0,
      messages.findIndex(({ role }) => role === 'user'),
    ),
  )
}
