import { MAX_APPROVED_TOOLS } from '../../../contract/sessions.ts'
import { NOT_APPROVED, type SubmitToolResultsRequest } from '../../../contract/turns.ts'
import { storableText } from '../../../lib/postgres-text.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { conflict, invalid } from '../../kit/errors.ts'
import type { ApprovedTools } from '../../tools/capabilities/toolset.ts'
import { type CallResult, pendingCalls, readAct } from '../calls.ts'
import type { Deps } from '../deps.ts'
import { loadCall } from '../run/tool.ts'

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

/**
 * Finds the tools of the approvals that are for a whole session, with the versions that were shown. Throws `invalid` for
 * a tool whose calls must all be approved, and for a question about a budget.
 */
export async function approvedForSession(
  deps: Deps,
  where: { organizationId: string; sessionId: string },
  results: Results,
): Promise<ApprovedTools> {
  const wanted = results.flatMap((one, index) => (isForSession(one) ? [{ id: one.tool_call_id, index }] : []))
  if (wanted.length === 0) return {}
  const { organizationId, sessionId } = where
  const turn = await deps.db.turn.findFirst({
    where: { sessionId, session: { organizationId }, finishedAt: null, status: { in: ['active', 'waiting'] } },
    select: { id: true },
  })
  const act = turn === null ? undefined : await readAct(deps.db, turn.id)
  const approved: ApprovedTools = {}
  for (const { id, index } of wanted) {
    const call = act && pendingCalls(act).find((pending) => pending.id === id)
    // The submission is refused with its own sentence.
    if (turn === null || act === undefined || call === undefined) continue
    const field = `tool_results.${index}.result.for`
    if (act.questions.includes(call)) throw invalid(`${field}: must be absent, because no tool waits for this approval`)
    const loaded = await loadCall(deps, { ...where, turnId: turn.id }, act.iteration, call.position)
    if (loaded?.tool?.needsApproval)
      throw invalid(`${field}: must be absent, because each call of ${call.name.slice(0, 200)} has to be approved`)
    approved[call.name] = loaded?.planned?.version ?? null
  }
  return approved
}

/** Reports whether a result is an approval for the session, of whatever call. */
const isForSession = ({ result, error }: Results[number]): boolean =>
  !error && typeof result === 'object' && result !== null && 'for' in result && result.for === 'session'

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
