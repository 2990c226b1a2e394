import { type SessionId, SessionId as SessionIdSchema, TurnId } from '../../../contract/kit/ids.ts'
import type { SubmitToolResultsRequest, Turn } from '../../../contract/turns.ts'
import { findAgentNamed } from '../../../domain/agents/named.ts'
import { conflict, invalid } from '../../../domain/kit/errors.ts'
import { type CreationAttempt, runOnce } from '../../../domain/kit/idempotency-keys.ts'
import { toId } from '../../../domain/kit/ids.ts'
import { createMessage } from '../../../domain/messages/create.ts'
import { createSession } from '../../../domain/sessions/create.ts'
import { getSession } from '../../../domain/sessions/read.ts'
import { submitToolResults } from '../../../domain/turns/control/client-calls.ts'
import { getTurn, listTurns } from '../../../domain/turns/read.ts'
import { decide, readConsents } from './consent.ts'
import type { AgentSendArguments, AgentStartArguments, AskedTurn } from './contract.ts'
import type { Face } from './face.ts'

type Without<T> = Omit<T, 'wait_seconds'>

/** Posts a message in a new session of an agent, or in a session that it has. */
export async function startTurn(
  face: Face,
  { agent, message, session }: Without<AgentStartArguments>,
): Promise<AskedTurn> {
  const { deps, actor } = face
  const agentId = await findAgentNamed(deps, actor, agent, 'agent')
  if (session !== undefined && (await getSession(deps, actor, session)).agent_id !== toId('agent', agentId)) {
    throw invalid('session: belongs to another agent; leave it out for a new session, or continue it with agent_send')
  }
  return once(face, ['agent_start', agent, message, session], async (attempt) => {
    const id = session ?? SessionIdSchema.parse((await createSession(deps, actor, { agent_id: agentId }, attempt)).id)
    return postMessage(face, id, message, attempt)
  })
}

/** Posts a message in a session, or gives its pending calls their results. */
export async function sendToTurn(face: Face, args: Without<AgentSendArguments>): Promise<AskedTurn> {
  const { session, message, results = [], approvals = [] } = args
  const hasAnswers = results.length + approvals.length > 0
  if (hasAnswers === (message !== undefined))
    throw invalid('message: must be given, or else results or approvals of calls, but not both')
  if (message !== undefined) {
    return once(face, ['agent_send', session, message], (attempt) => postMessage(face, session, message, attempt))
  }
  // Afterwards the turn may end at any time.
  const turn = (await newestTurn(face, session, 'waiting')) ?? (await newestTurn(face, session, 'active'))
  if (turn === undefined) throw conflict('The session is not waiting for tool results', 'not_waiting')
  const named = results.map(({ call_id, ...result }) => ({ tool_call_id: call_id, ...result }))
  await submit(face, session, [...named, ...approvals.map(decide)])
  return { session, turn }
}

/** Passes on the decisions of the client's user about the calls of a turn that still wait for them. */
export async function giveConsents(
  face: Face,
  place: AskedTurn,
  responses: Record<string, unknown>,
): Promise<AskedTurn> {
  const { pending_tool_calls } = await getTurn(face.deps, face.actor, place.session, place.turn)
  const decisions = readConsents(pending_tool_calls, responses)
  if (decisions.length > 0) await submit(face, place.session, decisions)
  return place
}

/** Returns the session's newest turn of a status, by default of any. Throws `not_found`. */
export async function newestTurn(
  { deps, actor }: Face,
  session: SessionId,
  status?: Turn['status'],
): Promise<TurnId | undefined> {
  const turns = await listTurns(deps, actor, session, { status, limit: 1, offset: 0 })
  for await (const [turn] of turns) return turn && TurnId.parse(turn.id)
  return undefined
}

/** Runs a creation once for an Idempotency-Key. The id of the JSON-RPC message does not count: clients repeat ids. */
function once<T>(face: Face, request: unknown[], create: (attempt: CreationAttempt) => Promise<T>): Promise<T> {
  const { deps, actor, idempotencyKey: key } = face
  return key === undefined ? create({}) : runOnce(deps, actor, { key, request: ['/v1/mcp', ...request] }, create)
}

async function postMessage(
  { deps, actor }: Face,
  session: SessionId,
  message: string,
  attempt: CreationAttempt,
): Promise<AskedTurn> {
  const content = [{ type: 'text' as const, text: message }]
  const { turnUuid } = await createMessage(deps, actor, session, { message: { content } }, attempt)
  return { session, turn: turnUuid }
}

async function submit(
  { deps, actor }: Face,
  session: SessionId,
  tool_results: SubmitToolResultsRequest['tool_results'],
): Promise<void> {
  await submitToolResults(deps, actor, session, { tool_results })
}
