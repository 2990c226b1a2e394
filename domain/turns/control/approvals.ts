import { MAX_APPROVED_TOOLS } from '../../../contract/sessions.ts'
import { NOT_APPROVED, type SubmitToolResultsRequest } from '../../../contract/turns.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { storableText } from '../../../lib/postgres-text.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { callStep } from '../../events/log/steps.ts'
import { conflict, invalid } from '../../kit/errors.ts'
import { ASKING } from '../../tools/agents/capability.ts'
import type { ApprovedTools } from '../../tools/capabilities/toolset.ts'
import { type CallResult, pendingCalls, readAct } from '../calls.ts'
import type { ChildTurn } from '../child-turns.ts'
import type { Deps } from '../deps.ts'
import { chooseChild } from '../run/child-call.ts'
import { type LoadedCall, loadCall } from '../run/tool.ts'

type Results = SubmitToolResultsRequest['tool_results']

/** Decision about a call that waits for approval. `isForSession`: its tool no longer asks in this session. */
type Decision = { isApproved: boolean; isForSession: boolean; reason: string }

/** Characters of a denial's reason that the model reads. */
const REASON_CHARACTERS = 1000

/** Returns the decision that a result holds. Throws `invalid` for anything else. `field` is the place of the result. */
export function decisionOf(result: unknown, field: string): Decision {
  const given = typeof result === 'object' && result !== null ? (result as Record<string, unknown>) : {}
  const { approved, reason, for: scope } = given
  if (typeof approved !== 'boolean') {
    throw invalid(
      `${field}.result: must be {"approved": true} or {"approved": false}, because the call waits for approval`,
    )
  }
  if (scope != null && (scope !== 'session' || !approved))
    throw invalid(`${field}.result.for: must be absent, or "session" in an approval`)
  return {
    isApproved: approved,
    isForSession: scope === 'session',
    reason: typeof reason === 'string' ? storableText(reason.trim().slice(0, REASON_CHARACTERS).toWellFormed()) : '',
  }
}

/** Returns the result of a call that was denied. */
export const denied = ({ reason }: Pick<Decision, 'reason'>): CallResult => ({
  status: 'error',
  error: reason === '' ? `${NOT_APPROVED}.` : `${NOT_APPROVED}: ${reason}`,
})

/** Facts about the tools of approved calls: what the approvals are recorded with. */
export type Approved = {
  /** Tools that are approved for the session, with the versions that were shown. */
  tools: ApprovedTools
  /** Turns by which agents are to answer, by the ids of the calls that ask them. */
  children: Map<string, ChildTurn>
}

/**
 * Reads what approvals among results need to know of their tools. Throws `invalid` for an approval for a whole session of
 * a tool whose calls must all be approved, or of a question about a budget.
 */
export async function readApproved(
  deps: Deps,
  where: { organizationId: string; sessionId: string },
  results: Results,
): Promise<Approved> {
  const approved: Approved = { tools: {}, children: new Map() }
  const given = results.flatMap((one, index) => (isApproval(one) ? [{ ...one, index }] : []))
  if (given.length === 0) return approved
  const { organizationId, sessionId } = where
  const turn = await deps.db.turn.findFirst({
    where: { sessionId, session: { organizationId }, finishedAt: null, status: { in: ['active', 'waiting'] } },
    select: { id: true },
  })
  const act = turn === null ? undefined : await readAct(deps.db, turn.id)
  for (const { tool_call_id, result, index } of given) {
    const call = act && pendingCalls(act).find(({ id }) => id === tool_call_id)
    // The other results are data, and the submission is refused for an unknown call with its own sentence.
    if (turn === null || act === undefined || call?.policy !== 'requires_approval') continue
    const field = `tool_results.${index}.result.for`
    if (result.for === 'session' && act.questions.includes(call))
      throw invalid(`${field}: must be absent, because no tool waits for this approval`)
    if (result.for !== 'session' && !call.name.startsWith(ASKING)) continue
    const place = { ...where, turnId: turn.id }
    const loaded = await loadCall(deps, place, act.iteration, call.position)
    if (result.for === 'session' && loaded?.tool?.needsApproval)
      throw invalid(`${field}: must be absent, because each call of ${call.name.slice(0, 200)} needs an approval`)
    if (result.for === 'session') approved.tools[call.name] = approvedAs(loaded)
    const asking = { ...place, step: callStep(act.iteration, call.id) }
    const child = loaded && (await chooseChild(deps, asking, loaded, 'may_start'))
    if (child) approved.children.set(call.id, child)
  }
  return approved
}

/** Returns the version of a tool whose call was shown. */
const approvedAs = (call: LoadedCall | undefined): string | null =>
  call?.planned?.approvedAs?.[call.position] ?? call?.planned?.version ?? null

type Approval = Results[number] & { result: { approved: true; for?: unknown } }

/** Reports whether a result is an approval, if its call waits for one. */
const isApproval = (one: Results[number]): one is Approval =>
  !one.error && isRecord(one.result) && one.result.approved === true

/** Adds tools to the approved ones of a session. Throws `conflict` at the limit. */
export async function addApprovedTools(
  db: Prisma.TransactionClient,
  sessionId: string,
  approved: ApprovedTools,
): Promise<void> {
  if (Object.keys(approved).length === 0) return
  const added = await db.$executeRaw`
    UPDATE sessions SET approved_tools = approved_tools || ${JSON.stringify(approved)}::jsonb, updated_at = now()
    WHERE id = ${sessionId}::uuid
      AND (SELECT count(*) FROM jsonb_object_keys(approved_tools || ${JSON.stringify(approved)}::jsonb)) <= ${MAX_APPROVED_TOOLS}`
  if (added === 0) throw conflict(`At most ${MAX_APPROVED_TOOLS} tools of a session can run without an approval`)
}
