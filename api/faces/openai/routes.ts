import type { Context } from 'koa'
import { type AgentId, type SessionId, TurnId, toId } from '../../../contract/kit/ids.ts'
import { listAgents } from '../../../domain/agents/list.ts'
import { getAgent } from '../../../domain/agents/read.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Credential } from '../../../domain/identity/auth/caller.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import { conflict, invalid } from '../../../domain/kit/errors.ts'
import { askModel } from '../../../domain/turns/ask-model.ts'
import { readCurrentTurn } from '../../../domain/turns/read.ts'
import { requireLiving } from '../../auth/authenticate.ts'
import { RequestError } from '../../http/errors.ts'
import { type Handle, reply } from '../../http/handle.ts'
import { whileHeld } from '../../http/held-wait.ts'
import { answerList, linesOf } from '../../http/json-list.ts'
import type { SseStreams } from '../../http/sse.ts'
import { acceptAnswers, acceptMessage, acceptOnce, messageOf, readTurn, serveTurn, type TurnPlace } from '../turns.ts'
import { agentIdOf, presentModel } from './agents.ts'
import { type CompletionRequest, openaiEndpoints } from './endpoints.ts'
import { schemaOf, withOutputOnly } from './output.ts'
import { conversationOf, decisionOf, isTask, readIntent, resultsFor, textOfMessage } from './request.ts'
import { type Conversation, conversationFor } from './sessions.ts'
import { createPieces, createRecital, errorOf, type Head, inChunks, inOne, type Piece, usageOf } from './translate.ts'

/** Time for which a request without a stream waits for its turn, a little less than its clients wait by default. */
const MAX_WAIT_MS = 590_000
const TASK_MS = 60_000
const MAX_TASK_CHARACTERS = 64 * 1024
/** Time after the end of a turn in which an equal request is a repetition: clients repeat a lost one within seconds. */
const REPEATED_MS = 5000

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
    if (isTask(header, body)) {
      return answerTask({ deps, streams, ctx, actor, credential }, agent, body)
    }
    const request = { intent: readIntent(body), id: conversationOf(header, body) }
    const conversation = conversationFor(deps, actor, agent, body, request)
    const open = acceptIn(deps, { actor, ctx, agent, body, conversation })
    const hasSchema = schemaOf(body) !== undefined
    const streamsText = body.stream === true && !hasSchema && (query.text ?? header('X-Text')) === 'streamed'
    const piecesOf = ({ sessionId }: TurnPlace) => {
      const pieces = createPieces({
        streamsText,
        callId: (call) => conversation.callId(sessionId, call),
        answersAt: `POST /v1/sessions/${toId('session', sessionId)}/tool-results`,
      })
      return hasSchema ? withOutputOnly(pieces) : pieces
    }
    if (body.stream) {
      const includesUsage = body.stream_options?.include_usage === true
      const translationOf = (place: TurnPlace) => inChunks(piecesOf(place), headOf(place, body), includesUsage)
      await serveTurn(deps, streams, ctx, { actor, credential, headers: {}, open, translationOf })
      return undefined
    }
    const held = { organizationId: actor.organizationId, ms: MAX_WAIT_MS }
    const deadline = performance.now() + MAX_WAIT_MS
    const { place, pieces } = await whileHeld(ctx, streams, held, async (signal) => {
      const place = await open()
      const pieces: Piece[] = []
      for await (const some of readTurn(deps, place, piecesOf(place), signal)) pieces.push(...some)
      return { place, pieces }
    })
    await requireLiving(deps, credential)
    ctx.set('X-Session-Id', toId('session', place.sessionId))
    return answerWhole(ctx, pieces, headOf(place, body), deadline)
  })
}

const headOf = ({ turnId }: TurnPlace, { model }: CompletionRequest): Head => ({
  id: `chatcmpl-${turnId.replaceAll('-', '')}`,
  created: Math.floor(Date.now() / 1000),
  model,
})

/**
 * Answers with the whole turn. A failure is a 400, which no client of this protocol repeats by itself: the service has
 * already repeated what may succeed. A client that was sent away before its time comes again, and waits on.
 */
function answerWhole(ctx: Context, pieces: Piece[], head: Head, deadline: number) {
  const last = pieces.at(-1)
  if (last?.type === 'finish') return reply(200, { ...inOne(pieces, head), object: 'chat.completion' as const })
  if (last?.type !== 'error') {
    if (performance.now() >= deadline) throw conflict('The answer takes longer than a request may; the turn goes on')
    throw new RequestError(503, 'The service cannot wait for the answer any longer; try again', { 'Retry-After': '1' })
  }
  ctx.status = 400
  ctx.set('X-Should-Retry', 'false')
  ctx.body = { error: errorOf(last) }
  return undefined
}

type Accepting = {
  actor: Actor
  ctx: Context
  agent: AgentId
  body: CompletionRequest
  conversation: Conversation
}

/** Returns a function that accepts what a request adds to its session: a message, results, or a word of approval. */
function acceptIn(deps: Deps, { actor, ctx, agent, body, conversation }: Accepting): () => Promise<TurnPlace> {
  const { id, intent, open } = conversation
  const controls = body.reasoning_effort == null ? undefined : { reasoning: { effort: body.reasoning_effort } }
  const message = intent.kind === 'message' ? messageOf(intent.content, controls, schemaOf(body)) : undefined
  const results = intent.kind === 'results' ? intent.results : []
  const approved = intent.kind === 'message' && id !== undefined ? decisionOf(intent.content) : undefined
  const posted = { actor, ctx, messages: body.messages, conversation: ['openai', agent, id ?? ''] }
  const graceMs = id === undefined ? undefined : REPEATED_MS
  return async () => {
    const decided = approved === undefined ? undefined : await decide(deps, actor, await open({}), approved)
    if (decided !== undefined) return decided
    return acceptOnce(deps, { ...posted, graceMs }, message !== undefined, async (attempt) => {
      const sessionId = await open(attempt)
      return message === undefined
        ? acceptAnswers(deps, actor, sessionId, (pending) => resultsFor(pending, results))
        : acceptMessage(deps, actor, sessionId, message, attempt)
    })
  }
}

/**
 * Answers the calls that wait for approval. A running turn without any is followed, because the word was sent before.
 * Undefined if no turn runs: then it is a message like others.
 */
async function decide(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  approved: boolean,
): Promise<TurnPlace | undefined> {
  const { lastSequence, turn } = await readCurrentTurn(deps, actor, sessionId)
  if (turn === undefined) return undefined
  const isAsked = turn.pending_tool_calls.some(({ kind }) => kind === 'approval')
  if (!isAsked)
    return turn.status === 'active' ? { sessionId, turnId: TurnId.parse(turn.id), after: lastSequence } : undefined
  return acceptAnswers(deps, actor, sessionId, (pending) =>
    pending.flatMap(({ id, kind }) => (kind === 'approval' ? [{ tool_call_id: id, result: { approved } }] : [])),
  )
}

type Request = {
  deps: Deps
  streams: SseStreams
  ctx: Context
  actor: Actor
  credential: Credential | undefined
}

/** Answers a request for a title or the like by one call of the agent's model, which no session knows of. */
async function answerTask({ deps, streams, ctx, actor, credential }: Request, agent: AgentId, body: CompletionRequest) {
  const question = body.messages.map(textOfMessage).join('\n\n')
  if (question.length > MAX_TASK_CHARACTERS)
    throw invalid(`messages: a task has at most ${MAX_TASK_CHARACTERS} characters`)
  const held = { organizationId: actor.organizationId, ms: TASK_MS }
  const { text, usage } = await whileHeld(ctx, streams, held, (signal) =>
    askModel(deps, actor, agent, question, signal),
  )
  await requireLiving(deps, credential)
  const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1000), model: body.model }
  const pieces: Piece[] = [
    { type: 'content', text },
    { type: 'finish', reason: 'stop', usage: usageOf(usage) },
  ]
  if (!body.stream) return answerWhole(ctx, pieces, head, 0)
  const frames = inChunks(createRecital(pieces), head, body.stream_options?.include_usage === true).begin()
  ctx.type = 'text/event-stream'
  ctx.body = frames.map(({ line }) => `data: ${line}\n\n`).join('')
  return undefined
}
