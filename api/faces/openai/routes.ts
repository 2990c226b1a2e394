import type { Context } from 'koa'
import { type AgentId, type SessionId, toId } from '../../../contract/kit/ids.ts'
import type { InputContentPart } from '../../../contract/messages.ts'
import { askModel } from '../../../domain/agents/ask-model.ts'
import { listAgents } from '../../../domain/agents/list.ts'
import { getAgent } from '../../../domain/agents/read.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import { conflict } from '../../../domain/kit/errors.ts'
import type { CreationAttempt } from '../../../domain/kit/idempotency-keys.ts'
import { readCurrentTurn } from '../../../domain/turns/read.ts'
import { type Handle, reply } from '../../http/handle.ts'
import { whileHeld } from '../../http/held-wait.ts'
import { answerList, linesOf } from '../../http/json-list.ts'
import type { SseStreams } from '../../http/sse.ts'
import { acceptAnswers, acceptMessage, acceptOnce, readTurn, serveTurn, type TurnPlace } from '../turns.ts'
import { agentIdOf, presentModel } from './agents.ts'
import { type CompletionRequest, openaiEndpoints } from './endpoints.ts'
import { conversationOf, decisionOf, isTask, readIntent, resultsFor, textOfMessage } from './request.ts'
import { type Conversation, openConversation } from './sessions.ts'
import { createPieces, createRecital, errorOf, type Head, inChunks, inOne, type Piece, usageOf } from './translate.ts'

/** Time for which a request without a stream waits for its turn. */
const MAX_WAIT_MS = 600_000
const TASK_MS = 60_000

/** Serves Chat Completions: an agent is a model, and its answer is a turn. */
export function openaiRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(openaiEndpoints.listModels, async ({ actor, ctx }) =>
    answerList(
      ctx,
      deps.log,
      linesOf(listAgents(deps, actor), (agent) => JSON.stringify(presentModel(agent))),
      { more: { object: 'list' } },
    ),
  )
  handle(openaiEndpoints.getModel, async ({ actor, params }) =>
    reply(200, presentModel(await getAgent(deps, actor, await agentIdOf(deps, actor, params.model)))),
  )
  handle(openaiEndpoints.complete, async ({ actor, credential, query, body, ctx }) => {
    const header = (name: string) => ctx.get(name)
    const agent = await agentIdOf(deps, actor, body.model)
    if (isTask(header, body)) return answerTask({ deps, streams, ctx, actor }, agent, body)
    const intent = readIntent(body)
    const conversation = await openConversation(deps, actor, agent, body, intent, conversationOf(header, body))
    const { sessionId } = conversation
    const posted = { actor, sessionId, messages: body.messages, ctx }
    const isMessage = conversation.intent.kind === 'message' && decisionOf(conversation.intent.content) === undefined
    const open = () =>
      acceptOnce(deps, posted, isMessage, (attempt) => accept(deps, { ...conversation, actor, body, ctx }, attempt))
    const piecesOf = () =>
      createPieces({
        streamsText: (query.text ?? header('X-Text')) === 'streamed',
        callId: conversation.callId,
        answersAt: `POST /v1/sessions/${toId('session', sessionId)}/tool-results`,
      })
    if (body.stream) {
      const includesUsage = body.stream_options?.include_usage === true
      const translationOf = (place: TurnPlace) => inChunks(piecesOf(), headOf(place, body), includesUsage)
      await serveTurn(deps, streams, ctx, { actor, credential, sessionId, headers: {}, open, translationOf })
      return undefined
    }
    const held = { organizationId: actor.organizationId, ms: MAX_WAIT_MS }
    return whileHeld(ctx, streams, held, async (signal) => {
      const place = await open()
      const pieces: Piece[] = []
      for await (const some of readTurn(deps, place, piecesOf(), signal)) pieces.push(...some)
      ctx.set('X-Session-Id', toId('session', sessionId))
      return answerWhole(ctx, pieces, headOf(place, body))
    })
  })
}

const headOf = ({ turnId }: TurnPlace, { model }: CompletionRequest): Head => ({
  id: `chatcmpl-${turnId.replaceAll('-', '')}`,
  created: Math.floor(Date.now() / 1000),
  model,
})

/**
 * Answers with the whole turn. A failure is a 400, which no client of this protocol repeats by itself: the service has
 * already repeated what may succeed.
 */
function answerWhole(ctx: Context, pieces: Piece[], head: Head) {
  const last = pieces.at(-1)
  if (last?.type === 'finish') return reply(200, { ...inOne(pieces, head), object: 'chat.completion' as const })
  if (last?.type !== 'error') throw conflict('The answer takes longer than this request may; the turn goes on')
  ctx.status = 400
  ctx.set('X-Should-Retry', 'false')
  ctx.body = { error: errorOf(last) }
  return undefined
}

type Accepting = Conversation & { actor: Actor; body: CompletionRequest; ctx: Context }

/** Accepts what a request adds to its session: a message, results, or a word of approval. */
async function accept(
  deps: Deps,
  { actor, sessionId, intent, body, ctx }: Accepting,
  attempt: CreationAttempt,
): Promise<TurnPlace> {
  const posted = { actor, sessionId, messages: body.messages, ctx }
  if (intent.kind === 'results') {
    return acceptAnswers(deps, posted, (pending) => resultsFor(pending, intent.results))
  }
  const approved = decisionOf(intent.content)
  if (approved !== undefined && (await waitsForApproval(deps, actor, sessionId))) {
    return acceptAnswers(deps, posted, (pending) =>
      pending.flatMap(({ id, kind }) => (kind === 'approval' ? [{ tool_call_id: id, result: { approved } }] : [])),
    )
  }
  const effort = body.reasoning_effort
  const message: { content: InputContentPart[]; controls?: { reasoning: { effort: typeof effort } } } = {
    content: intent.content,
    ...(effort == null ? {} : { controls: { reasoning: { effort } } }),
  }
  return acceptMessage(deps, posted, message, attempt)
}

async function waitsForApproval(deps: Deps, actor: Actor, sessionId: SessionId): Promise<boolean> {
  const { turn } = await readCurrentTurn(deps, actor, sessionId)
  return turn?.pending_tool_calls.some(({ kind }) => kind === 'approval') ?? false
}

type Request = { deps: Deps; streams: SseStreams; ctx: Context; actor: Actor }

/** Answers a request for a title or the like by one call of the agent's model, which no session knows of. */
async function answerTask({ deps, streams, ctx, actor }: Request, agent: AgentId, body: CompletionRequest) {
  const question = body.messages.map(textOfMessage).join('\n\n')
  const held = { organizationId: actor.organizationId, ms: TASK_MS }
  const { text, usage } = await whileHeld(ctx, streams, held, (signal) =>
    askModel(deps, actor, agent, question, signal),
  )
  const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: body.model }
  const pieces: Piece[] = [
    { type: 'content', text },
    { type: 'finish', reason: 'stop', usage: usageOf(usage) },
  ]
  if (!body.stream) return answerWhole(ctx, pieces, head)
  const frames = inChunks(createRecital(pieces), head, body.stream_options?.include_usage === true).begin()
  ctx.type = 'text/event-stream'
  ctx.body = frames.map(({ line }) => `data: ${line}\n\n`).join('')
  return undefined
}
