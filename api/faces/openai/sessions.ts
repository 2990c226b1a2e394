import { type AgentId, SessionId, toId } from '../../../contract/kit/ids.ts'
import { UpdateSessionRequest } from '../../../contract/sessions.ts'
import { getAgent } from '../../../domain/agents/read.ts'
import type { Deps } from '../../../domain/deps.ts'
import type { Actor } from '../../../domain/kit/actor.ts'
import { invalid } from '../../../domain/kit/errors.ts'
import { createSession } from '../../../domain/sessions/create.ts'
import { getSession } from '../../../domain/sessions/read.ts'
import { patchSession } from '../../../domain/sessions/update.ts'
import { parse } from '../../http/parse.ts'
import { openSession } from '../turns.ts'
import type { CompletionRequest } from './endpoints.ts'
import { callIdIn, type Intent, sessionOfCall, withHistory } from './request.ts'

/** Session of a request, and what the request adds to it. `callId` gives a call the id that its client gets. */
export type Conversation = { sessionId: SessionId; intent: Intent; callId: (id: string) => string }

/**
 * Opens the session that a request belongs to: by the client's id of the conversation, by the calls that it has results
 * for, or a new one. The session gets the request's tools. Throws `not_found` and `invalid`.
 */
export async function openConversation(
  deps: Deps,
  actor: Actor,
  agent: AgentId,
  body: CompletionRequest,
  intent: Intent,
  id: string | undefined,
): Promise<Conversation> {
  const tools = toolsOf(body)
  if (id !== undefined) {
    const sessionId = await sessionNamed(deps, actor, agent, id)
    await offerTools(deps, actor, sessionId, tools)
    return { sessionId, intent, callId: (call) => call }
  }
  if (intent.kind === 'results') {
    const found = intent.results.flatMap((result) => ({ ...sessionOfCall(result.id), text: result.text }))
    const [first] = found
    const { data: sessionId } = SessionId.safeParse(`session_${first?.sessionHex}`)
    if (sessionId === undefined) throw invalid('tool_call_id: is not the id of a call that was sent')
    await requireSessionOf(deps, actor, agent, sessionId)
    await offerTools(deps, actor, sessionId, tools)
    const results = found.flatMap(({ sessionHex, id, text }) =>
      sessionHex === first?.sessionHex && id !== undefined ? [{ id, text }] : [],
    )
    return { sessionId, intent: { kind: 'results', results }, callId: callIdOf(sessionId) }
  }
  await getAgent(deps, actor, agent)
  const session = await createSession(deps, actor, { agent_id: agent, ...(tools && { tools }) })
  const sessionId = SessionId.parse(session.id)
  const content = withHistory(body, intent.content)
  return { sessionId, intent: { kind: 'message', content }, callId: callIdOf(sessionId) }
}

const callIdOf = (sessionId: SessionId) => (call: string) => callIdIn(sessionId.replaceAll('-', ''), call)

/** Returns the session with this id of ours, or the session of the client's own id. */
async function sessionNamed(deps: Deps, actor: Actor, agent: AgentId, id: string): Promise<SessionId> {
  const own = /^session_/.test(id) ? SessionId.safeParse(id).data : undefined
  if (own !== undefined) return requireSessionOf(deps, actor, agent, own)
  return openSession(deps, actor, { face: 'openai', agentId: agent, externalId: id })
}

async function requireSessionOf(deps: Deps, actor: Actor, agent: AgentId, id: SessionId): Promise<SessionId> {
  const session = await getSession(deps, actor, id)
  if (session.agent_id === toId('agent', agent)) return id
  throw invalid(`model: ${toId('session', id)} is a session of another agent`)
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

async function offerTools(deps: Deps, actor: Actor, sessionId: SessionId, tools: Tools | undefined): Promise<void> {
  if (tools === undefined) return
  const { tools: had } = await getSession(deps, actor, sessionId)
  if (JSON.stringify(had) !== JSON.stringify(tools)) await patchSession(deps, actor, sessionId, { tools })
}
