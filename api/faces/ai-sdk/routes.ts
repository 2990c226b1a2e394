import { type AgentId, type SessionId, TurnId, toId } from '../../../contract/kit/ids.ts'
import type { Message } from '../../../contract/messages.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import { listMessages } from '../../../domain/messages/list.ts'
import { findSessionOf } from '../../../domain/sessions/face-sessions.ts'
import { cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { readCurrentTurn } from '../../../domain/turns/read.ts'
import { type Handle, reply } from '../../http/handle.ts'
import type { SseStreams } from '../../http/sse.ts'
import {
  acceptAnswers,
  acceptMessage,
  acceptOnce,
  findUnanswered,
  openSession,
  serveTurn,
  type TurnPlace,
} from '../turns.ts'
import { chatEndpoints, type UIPart } from './endpoints.ts'
import { toUIMessages } from './history.ts'
import { answersTo, readIntent } from './request.ts'
import { createTranslation, uiMessageId, type Version } from './translate.ts'

const HEADERS = { 'X-Vercel-AI-UI-Message-Stream': 'v1' }

type Style = { version: Version; text?: 'held' | 'streamed' | undefined; given?: UIPart[] }

const lastStepOf = (parts: UIPart[]): UIPart[] =>
  parts.slice(parts.findLastIndex(({ type }) => type === 'step-start') + 1)

/** Serves the AI SDK's `useChat`: a chat is a session, and its requests and streams are as DefaultChatTransport has them. */
export function aiSdkRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  const externalOf = (params: { agent_id: AgentId }, externalId: string) =>
    ({ face: 'ai-sdk', agentId: params.agent_id, externalId }) as const

  handle(chatEndpoints.send, async ({ actor, credential, params, query, body, ctx }) => {
    const intent = readIntent(body)
    const sessionId = await openSession(deps, actor, externalOf(params, body.id))
    const posted = { actor, sessionId, messages: body.messages, ctx }
    await serveTurn(deps, streams, ctx, {
      actor,
      credential,
      sessionId,
      headers: HEADERS,
      open: async () => {
        const isMessage = intent.kind === 'message'
        const lost = isMessage && intent.isSentAgain ? await findUnanswered(deps, posted, intent.content) : undefined
        if (lost !== undefined) return lost
        return acceptOnce(deps, posted, isMessage, (attempt) =>
          isMessage
            ? acceptMessage(deps, posted, intent, attempt)
            : acceptAnswers(deps, posted, (pending) => answersTo(pending, intent.parts)),
        )
      },
      translationOf: translationIn({
        version: params.version,
        text: query.text,
        given: intent.kind === 'answers' ? lastStepOf(intent.parts) : [],
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
      sessionId,
      headers: HEADERS,
      open: async () => place,
      translationOf: translationIn({ version: params.version, text: query.text }),
    })
    return undefined
  })

  handle(chatEndpoints.history, async ({ actor, params }) => {
    const sessionId = await findSessionOf(deps, actor, externalOf(params, params.chat_id))
    if (sessionId === undefined) return reply(200, [])
    const { turn } = await readCurrentTurn(deps, actor, sessionId)
    return reply(200, toUIMessages(await readLatest(deps, actor, sessionId), turn, params.version))
  })

  handle(chatEndpoints.stop, async ({ actor, params, body }) => {
    const sessionId = await findSessionOf(deps, actor, externalOf(params, params.chat_id))
    if (sessionId === undefined) return reply(204, undefined)
    const { turn } = await readCurrentTurn(deps, actor, sessionId)
    const { activeStreamId } = body
    const isMeant = activeStreamId == null || (turn && [turn.id, uiMessageId(turn.id)].includes(activeStreamId))
    if (turn !== undefined && isMeant) await cancelTurns(deps, actor, sessionId, TurnId.parse(turn.id))
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
  return messages.slice(messages.findIndex(({ role }) => role === 'user'))
}
