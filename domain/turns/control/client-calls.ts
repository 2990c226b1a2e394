import { createHash } from 'node:crypto'
import { BUDGET_TOOL } from '../../../contract/budgets.ts'
import type { SessionId } from '../../../contract/kit/ids.ts'
import { QuestionAnswer, type SubmitToolResultsRequest, type SubmittedToolResults } from '../../../contract/turns.ts'
import { canonicalJson } from '../../../lib/canonical-json.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { SettleOutcome } from '../../../workflows/messages.ts'
import type { NewEvent } from '../../events/log/append.ts'
import { actStep } from '../../events/log/steps.ts'
import { withLockedSession } from '../../events/log/transaction.ts'
import type { Actor } from '../../kit/actor.ts'
import { type Audited, audit } from '../../kit/audit/entry.ts'
import { conflict, invalid, noSession } from '../../kit/errors.ts'
import { toId } from '../../kit/ids.ts'
import { raiseBudget } from '../../spending/raise.ts'
import {
  type Act,
  awaitsClient,
  type Call,
  type CallResult,
  callCompleted,
  callStarted,
  pendingCalls,
  planRuns,
  presentRequested,
  readAct,
} from '../calls.ts'
import type { Deps } from '../deps.ts'
import { passPlaceOn } from '../run/turn-admission.ts'
import { loadTurnAlone } from '../run/turn-context.ts'
import type { TurnPlace } from '../turn-place.ts'
import { type Approved, addApprovedTools, decisionOf, denied, readApproved } from './approvals.ts'
import { checkAnswers } from './check-answers.ts'
import { notifyWorkflow } from './workflow-outbox.ts'

/**
 * Requests the client's answers to the calls that it has not answered yet; from then on the turn waits. Without such
 * calls it does not wait. Idempotent.
 */
export async function requestCalls(deps: Deps, turn: TurnPlace, iteration: number): Promise<SettleOutcome> {
  await withLockedSession(deps, turn, async ({ db, append }) => {
    const act = await readAct(db, turn.turnId, iteration)
    const asked = act?.calls.filter(awaitsClient) ?? []
    if (act === undefined || asked.length === 0) return
    const data = { tool_calls: asked.map(presentRequested) }
    await append(turn.turnId, [{ type: 'tool.call_requested', step: actStep(iteration), execId: act.execId, data }])
  })
  return settleCalls(deps, turn, iteration)
}

/** Checks whether all of the client's answers have arrived. Idempotent. */
export const settleCalls = (deps: Deps, turn: TurnPlace, iteration: number): Promise<SettleOutcome> =>
  settle(deps, turn, iteration, 'wait')

/** Records a timeout for each missing answer when the waiting time is over; the turn then continues. Idempotent. */
export const settleOverdueCalls = (deps: Deps, turn: TurnPlace, iteration: number): Promise<SettleOutcome> =>
  settle(deps, turn, iteration, 'give_up')

async function settle(
  deps: Deps,
  turn: TurnPlace,
  iteration: number,
  whenMissing: 'wait' | 'give_up',
): Promise<SettleOutcome> {
  const context = await loadTurnAlone(deps, turn, actStep(iteration))
  if (context === null || context.status === 'cancelled' || context.status === 'failed') return { outcome: 'ended' }
  const settled = await withLockedSession(deps, turn, async (session): Promise<SettleOutcome> => {
    const act = await readAct(session.db, turn.turnId, iteration)
    if (act === undefined) return { outcome: 'ended' }
    const missing = pendingCalls(act)
    if (missing.length > 0 && whenMissing === 'wait')
      return { outcome: 'waiting', forMs: deps.limits.clientToolTimeoutMs }
    if (missing.length > 0) {
      const appended = await session.append(
        turn.turnId,
        missing.map((call) => unanswered(deps, act, call)),
      )
      if (appended.outcome !== 'appended') return { outcome: 'ended' }
    }
    return { outcome: 'settled', runs: planRuns(context.toolset, act.calls) }
  })
  if (settled?.outcome === 'waiting') passPlaceOn(deps, context)
  return settled ?? { outcome: 'ended' }
}

function unanswered({ limits: { clientToolTimeoutMs } }: Deps, act: Act, call: Call): NewEvent {
  const error = `The client gave no result within ${Math.round(clientToolTimeoutMs / 1000)} s.`
  return callCompleted(act.iteration, act.execId, call, { status: 'timeout', error })
}

/**
 * Records results for calls that the client is to answer. A turn that waits continues when the last one is in. A client
 * may answer as soon as it sees the model's calls, before the turn waits: then the turn does not ask for these. All or
 * none of a request's results are accepted. Throws `not_found` for a session that the caller does not have, `conflict`
 * when no call is pending, `invalid` for a malformed approval, an answer that does not fit its question, and a result that
 * answers no pending call or answers one twice.
 */
export async function submitToolResults(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  { tool_results: results }: SubmitToolResultsRequest,
): Promise<SubmittedToolResults> {
  const where = { organizationId: actor.organizationId, sessionId }
  await checkAnswers(deps, where, results)
  const approved = await readApproved(deps, where, results)
  const submitted = await withLockedSession(deps, where, async ({ db, append }) => {
    const turn = await runningTurn(db, sessionId)
    const act = turn && (await readAct(db, turn.id))
    const pending = act ? pendingCalls(act).length : 0
    if (!turn || !act || pending === 0) throw notWaiting()
    const events = results.map((result, index) => toEvent(act, result, `tool_results.${index}`, approved))
    await audit(db, actor, ...decisionsOf(act, { sessionId, turnId: turn.id }, results))
    checkUnique(results.map(({ tool_call_id }) => tool_call_id))
    for (const call of approvedBudgets(act, events)) await raiseBudget(db, actor, turn.id, call.arguments)
    await addApprovedTools(db, sessionId, approved.tools)
    const appended = await append(turn.id, events)
    if (appended.outcome !== 'appended') throw notWaiting(' any more')
    const toolCallId = { in: results.map(({ tool_call_id }) => tool_call_id) }
    await db.toolCallLease.deleteMany({ where: { turnId: turn.id, toolCallId } })
    // The record knows which calls have been requested by now.
    const { status } = await db.turn.findUniqueOrThrow({ where: { id: turn.id }, select: { status: true } })
    return { turn, isWaiting: status === 'waiting', at: appended.at }
  })
  if (submitted === undefined) throw noSession()
  const { turn, isWaiting, at } = submitted
  if (turn.status === 'waiting' && !isWaiting) {
    const { organizationId } = actor
    void notifyWorkflow(deps, { turnId: turn.id, organizationId, hasEnded: false, noticeDueAt: at })
  }
  return { accepted: results.length, status: isWaiting ? 'waitingfortoolresults' : 'active' }
}

/** Returns the calls for more budget that the events approve. */
const approvedBudgets = ({ questions }: Act, events: NewEvent[]): Call[] =>
  questions.filter(
    ({ id, name }) =>
      name === BUDGET_TOOL && events.some(({ data }) => data.tool_call_id === id && data.success === true),
  )

const notWaiting = (since = '') => conflict(`The session is not waiting for tool results${since}`, 'not_waiting')

/** Finds the turn of a session that runs or waits. */
export const runningTurn = (db: Prisma.TransactionClient, sessionId: string) =>
  db.turn.findFirst({
    where: { sessionId, finishedAt: null, status: { in: ['active', 'waiting'] } },
    select: { id: true, status: true },
  })

type SubmittedResult = SubmitToolResultsRequest['tool_results'][number]

function toEvent(act: Act, result: SubmittedResult, field: string, { children }: Approved): NewEvent {
  const pending = pendingCalls(act)
  const call = pending.find(({ id }) => id === result.tool_call_id)
  if (call === undefined) {
    const ids = pending.map(({ id }) => id)
    throw invalid(
      `${field}.tool_call_id: ${result.tool_call_id.slice(0, 200)} is not pending; pending are: ${ids.join(', ').slice(0, 2000)}`,
    )
  }
  const error = errorOf(result)
  const isApproval = call.policy === 'requires_approval' && error === undefined
  const isQuestion = act.questions.includes(call)
  // The approval of a call that is to run is recorded as `tool.started`, with the turn of the agent that it asks: only the
  // first event of a step is kept.
  const decision = isApproval ? decisionOf(result.result, field) : undefined
  if (decision?.isApproved) {
    if (isQuestion) return callCompleted(act.iteration, act.execId, call, toResult(result, error))
    return callStarted(act.iteration, act.execId, call, children.get(call.id))
  }
  if (isQuestion && !isApproval && error === undefined) checkAnswer(result.result, field)
  if (!isApproval && error === undefined && result.result === undefined) {
    throw invalid(`${field}.result: is required, or error; null is a result, too`)
  }
  return callCompleted(act.iteration, act.execId, call, decision ? denied(decision) : toResult(result, error))
}

/**
 * Returns the entries of the approvals and denials among valid results. The hash is of the arguments as the caller saw
 * them, so of masks instead of secrets.
 */
const decisionsOf = (
  act: Act,
  { sessionId, turnId }: { sessionId: string; turnId: string },
  results: SubmittedResult[],
) =>
  results.flatMap((result): Audited[] => {
    const call = [...act.calls, ...act.questions].find(({ id }) => id === result.tool_call_id)
    if (call?.policy !== 'requires_approval') return []
    const decision = errorOf(result) === undefined ? decisionOf(result.result, 'result') : undefined
    const details = {
      session_id: toId('session', sessionId),
      tool_call_id: call.id.slice(0, SHOWN_CHARACTERS).toWellFormed(),
      tool: call.name.slice(0, SHOWN_CHARACTERS).toWellFormed(),
      arguments_sha256: createHash('sha256').update(canonicalJson(call.arguments)).digest('hex'),
      ...(decision?.isForSession && { for: 'session' }),
    }
    return [{ action: decision?.isApproved ? 'turn.approve' : 'turn.deny', target: turnId, details }]
  })

/** Characters of a call's id and name in an entry of the audit log. A model may make up long ones. */
const SHOWN_CHARACTERS = 200

/**
 * Returns the error of a submitted result, undefined for a success. Some clients send an empty error with each result,
 * so an empty one counts only when there is no result; it then gets a default message.
 */
function errorOf({ result, error }: SubmittedResult): string | undefined {
  if (error === '' && result === undefined) return 'The client reported an error and gave no reason.'
  return error || undefined
}

function checkAnswer(result: unknown, field: string): void {
  if (QuestionAnswer.safeParse(result).success) return
  throw invalid(
    `${field}.result: must be {"action": "accept", "content": {…}}, {"action": "decline"} or {"action": "cancel"}, because the call asks the user`,
  )
}

const toResult = ({ result }: SubmittedResult, error: string | undefined): CallResult =>
  error !== undefined
    ? { status: 'error', error }
    : { status: 'success', parts: [{ type: 'text', text: JSON.stringify(result ?? null) }] }

function checkUnique(ids: string[]): void {
  const repeated = ids.find((id, index) => ids.indexOf(id) !== index)
  if (repeated !== undefined)
    throw invalid(`tool_results: must have one result for each call, but ${repeated.slice(0, 200)} is there twice`)
}
