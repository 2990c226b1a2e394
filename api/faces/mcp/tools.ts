import { type CallToolResult, type InputRequiredResult, inputRequired } from '@modelcontextprotocol/server'
import type { SessionId } from '../../../contract/kit/ids.ts'
import { toId } from '../../../domain/kit/ids.ts'
import { readTurnAnswer } from '../../../domain/messages/wait.ts'
import { cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { requireLiving } from '../../auth/authenticate.ts'
import { whileHeld } from '../../http/held-wait.ts'
import { awaitTurn } from './await-turn.ts'
import { giveConsents, newestTurn, sendToTurn, startTurn } from './commands.ts'
import { askForConsent, writeState } from './consent.ts'
import type {
  AgentAnswer,
  AgentCancelArguments,
  AgentGetArguments,
  AgentSendArguments,
  AgentStartArguments,
  AskedTurn,
} from './contract.ts'
import type { Face, ToolRequest } from './face.ts'
import { presentAnswer, toResult } from './present.ts'
import { progressOf } from './progress.ts'

/** Request of a tool, and whether its client can show a form to its user. */
export type ToolCall = { face: Face; request: ToolRequest; canAsk: boolean }
type Answer = CallToolResult | InputRequiredResult

/** Posts a message in a new session, or in the given one, and waits for the answer. */
export const startAgent = (call: ToolCall, { wait_seconds, ...args }: AgentStartArguments): Promise<Answer> =>
  answerTurn(call, wait_seconds, () => startTurn(call.face, args))

/** Waits for a turn's answer, by default the session's newest turn. */
export async function getAgent(call: ToolCall, { session, turn, wait_seconds }: AgentGetArguments): Promise<Answer> {
  const { face } = call
  const found = turn ?? (await newestTurn(face, session))
  if (found === undefined) return toResult(idle(session))
  return answerTurn(call, wait_seconds, async () => ({ session, turn: found }))
}

/** Posts a message, or answers calls that wait for the client, and waits for the agent's answer. */
export const sendAgent = (call: ToolCall, { wait_seconds, ...args }: AgentSendArguments): Promise<Answer> =>
  answerTurn(call, wait_seconds, () => sendToTurn(call.face, args))

/** Cancels unfinished turns. Repeated, it changes nothing. */
export async function cancelAgent({ face }: ToolCall, { session, turn }: AgentCancelArguments): Promise<Answer> {
  const { deps, actor } = face
  const { message } = await cancelTurns(deps, actor, session, turn)
  const shown = turn ?? (await newestTurn(face, session))
  if (shown === undefined) return toResult(idle(session), message)
  return toResult(presentAnswer(await readTurnAnswer(deps, actor, { sessionUuid: session, turnUuid: shown })), message)
}

const idle = (session: SessionId): AgentAnswer => ({ session: toId('session', session), status: 'idle', pending: [] })

/**
 * Waits for the turn that `open` returns, and presents its answer, or asks the client's user for approvals. A request
 * that comes again with the user's decisions opens nothing: its state names the turn.
 */
async function answerTurn(call: ToolCall, waitSeconds: number, open: () => Promise<AskedTurn>): Promise<Answer> {
  const { face, request, canAsk } = call
  const state = request.requestState<AskedTurn>()
  const responses = (state && request.inputResponses) ?? {}
  const progress = progressOf(request)
  const found = await whileWaiting(face, waitSeconds, async (signal) => {
    const place = await (state === undefined ? open() : giveConsents(face, state, responses))
    return { place, answer: await awaitTurn(face, place, signal, progress) }
  }).finally(() => progress?.end())
  await requireLiving(face.deps, face.credential)
  const answer = presentAnswer(found.answer)
  const forms = canAsk ? askForConsent(answer.pending, Object.keys(responses)) : undefined
  if (forms === undefined) return toResult(answer)
  return inputRequired({ inputRequests: forms, requestState: writeState(found.place) })
}

/** Waits as one of the organization's streams. Without waiting nothing is held. */
function whileWaiting<T>(face: Face, seconds: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { ctx, streams, actor } = face
  if (seconds === 0) return work(AbortSignal.abort())
  return whileHeld(ctx, streams, { organizationId: actor.organizationId, ms: seconds * 1000 }, work)
}
