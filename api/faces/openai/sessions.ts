import { type AgentId, SessionId, toId } from '../../../contract/kit/ids.ts'
import { UpdateSessionRequest } from '../../../contract/sessions.ts'
import { getAgent } from '../../../domain/agents/read.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import { invalid } from '../../../domain/kit/errors.ts'
import type { CreationAttempt } from '../../../domain/kit/idempotency-keys.ts'
import { createSession } from '../../../domain/sessions/create.ts'
import { getSession } from '../../../domain/sessions/read.ts'
import { patchSession } from '../../../domain/sessions/update.ts'
import { parse } from '../../http/parse.ts'
import { openSession } from '../turns.ts'
import type { CompletionRequest } from './endpoints.ts'
import { callIdIn, type Intent, sessionOfCall, withHistory } from './request.ts'

/** Conversation of a request, and what the request adds to it. */
export type Conversation = {
  /** The client's id of it, or of its session; undefined for a request that stands alone. */
  id: string | undefined
  intent: Intent
  /** Opens the session, which gets the request's tools. Throws `not_found` and `invalid`. */
  open: (attempt: CreationAttempt) => Promise<SessionId>
  /** Returns the id of a call as the client gets it. */
  callId: (sessionId: SessionId, call: string) => string
}

/**
 * Finds the conversation that a request belongs to: by the client's id, by the calls that it has results for, or a new
 * one. Nothing is changed before it is opened. Throws `invalid`.
 */
export function conversationFor(
  deps: Deps,
  actor: Actor,
  agent: AgentId,
  body: CompletionRequest,
  { intent, id }: { intent: Intent; id: string | undefined },
): Conversation {
  const tools = toolsOf(body)
  if (id !== undefined) {
    const open = () => openNamed(deps, actor, agent, id, tools)
    return { id, intent, open, callId: (_, call) => call }
  }
  if (intent.kind === 'results') {
    const { sessionId, results } = resultsOfOne(intent)
    const open = () => openOwn(deps, actor, agent, sessionId, tools)
    return { id: sessionId, intent: { kind: 'results', results }, open, callId: callIdOf }
  }
  const open = async (attempt: CreationAttempt) => {
    await getAgent(deps, actor, agent)
    const session = await createSession(deps, actor, { agent_id: agent, ...(tools && { tools }) }, attempt)
    return SessionId.parse(session.id)
  }
  const content = withHistory(body, intent.content)
  return { id: undefined, intent: { kind: 'message', content }, open, callId: callIdOf }
}

const callIdOf = (sessionId: SessionId, call: string) => callIdIn(sessionId.replaceAll('-', ''), call)

/** Returns the session that the calls name, and the results of its calls. Throws `invalid`. */
function resultsOfOne({ results }: Extract<Intent, { kind: 'results' }>) {
  const found = results.flatMap((result) => ({ ...sessionOfCall(result.id), text: result.text }))
  const hex = found[0]?.sessionHex
  const { data: sessionId } = SessionId.safeParse(`session_${hex}`)
  if (sessionId === undefined) throw invalid('tool_call_id: is not the id of a call that was sent')
  const own = found.flatMap(({ sessionHex, id, text }) => (sessionHex === hex && id !== undefined ? { id, text } : []))
  return { sessionId, results: own }
}

/** Opens the session with this id of ours, or the session of the client's own id. */
async function openNamed(
  deps: Deps,
  actor: Actor,
  agent: AgentId,
  id: string,
  tools: Tools | undefined,
): Promise<SessionId> {
  const { data: own } = SessionId.safeParse(id)
  if (own !== undefined && id.startsWith('session_')) return openOwn(deps, actor, agent, own, tools)
  const sessionId = await openSession(deps, actor, { face: 'openai', agentId: agent, externalId: id })
  if (tools === undefined) return sessionId
  const { tools: had } = await getSession(deps, actor, sessionId)
  await offerTools(deps, actor, sessionId, had, tools)
  return sessionId
}

/** Opens a session of this service. It may have tools of its own, which it keeps. */
async function openOwn(deps: Deps, actor: Actor, agent: AgentId, id: SessionId, tools: Tools = []): Promise<SessionId> {
  const { agent_id, tools: had } = await getSession(deps, actor, id)
  if (agent_id !== toId('agent', agent)) throw invalid(`model: ${toId('session', id)} is a session of another agent`)
  const names = new Set(tools.map(({ name }) => name))
  await offerTools(deps, actor, id, had, [...had.filter(({ name }) => !names.has(name)), ...tools])
  return id
}

type Tools = NonNullable<UpdateSessionRequest['tools']>

/** Returns the client's tools; undefined if the request does not say which it has. */
function toolsOf({ tools, tool_choice }: CompletionRequest): Tools | undefined {
  if (tools == null) return undefined
  const given = (tool_choice === 'none' ? [] : tools).map(({ function: { name, description, parameters } }) => ({
    type: 'client_side',
    name,
    description: description ?? '',
    parameters: parameters ?? { type: 'object', properties: {} },
  }))
  return parse(UpdateSessionRequest, { tools: given }, '').tools ?? []
}

async function offerTools(deps: Deps, actor: Actor, id: SessionId, had: Tools, tools: Tools): Promise<void> {
  if (JSON.stringify(had) !== JSON.stringify(tools)) await patchSession(deps, actor, id, { tools })
}
