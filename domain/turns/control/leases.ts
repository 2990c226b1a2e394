import type { SessionId } from '../../../contract/kit/ids.ts'
import { QUESTION_TOOL, type ToolCallLease } from '../../../contract/turns.ts'
import { deleteInBatches } from '../../../lib/delete-in-batches.ts'
import type { Actor } from '../../kit/actor.ts'
import { conflict, DomainError, invalid } from '../../kit/errors.ts'
import { requireSession } from '../../kit/session-scope.ts'
import { pendingCalls, readAct } from '../calls.ts'
import type { Deps } from '../deps.ts'
import { runningTurn } from './client-calls.ts'

type LeasedCall = { session_id: SessionId; tool_call_id: string }

/**
 * Leases a pending call of a client's tool to a holder, or renews its lease, by the database's clock. Throws `not_found`
 * for a session that the caller does not have, `invalid` for a call that a person has to answer, and `conflict` for a call
 * that is not pending or has another holder.
 */
export async function leaseToolCall(
  deps: Deps,
  actor: Actor,
  call: LeasedCall,
  holder: string,
): Promise<ToolCallLease> {
  const { session_id: sessionId, tool_call_id: toolCallId } = call
  await requireSession(deps, actor, sessionId)
  const turn = await runningTurn(deps.db, sessionId)
  if (turn === null) throw notPending()
  const ms = deps.limits.toolCallLeaseMs
  const [taken] = await deps.db.$queryRaw<{ expiresAt: Date }[]>`
    INSERT INTO tool_call_leases (turn_id, tool_call_id, holder, expires_at)
    VALUES (${turn.id}::uuid, ${toolCallId}, ${holder}, clock_timestamp() + make_interval(secs => ${ms / 1000}))
    ON CONFLICT (turn_id, tool_call_id) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
    WHERE tool_call_leases.holder = excluded.holder OR tool_call_leases.expires_at < clock_timestamp()
    RETURNING expires_at AS "expiresAt"`
  if (taken === undefined) throw await heldByAnother(deps, turn.id, toolCallId)
  // Checked last: a result ends the lease that it finds, so the call of a later lease is no longer pending.
  const problem = await findProblem(deps, turn.id, toolCallId)
  if (problem !== undefined) {
    await deps.db.toolCallLease.deleteMany({ where: { turnId: turn.id, toolCallId, holder } })
    throw problem
  }
  return { expires_at: taken.expiresAt.toISOString(), expires_in_ms: ms }
}

/** Ends a holder's lease, if it has one. Throws `not_found` for a session that the caller does not have. */
export async function releaseToolCall(deps: Deps, actor: Actor, call: LeasedCall, holder: string): Promise<void> {
  const { session_id: sessionId, tool_call_id: toolCallId } = call
  await requireSession(deps, actor, sessionId)
  await deps.db.toolCallLease.deleteMany({ where: { turn: { sessionId }, toolCallId, holder } })
}

/** Deletes the leases of calls that ended without a result. Throws the signal's reason when it aborts. */
export const deleteOldLeases = ({ db }: Deps, signal: AbortSignal): Promise<number> =>
  deleteInBatches(
    signal,
    (limit) => db.$executeRaw`
      DELETE FROM tool_call_leases WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM tool_call_leases WHERE expires_at < now() - interval '1 hour' ORDER BY expires_at LIMIT ${limit}
      ))`,
  )

const notPending = () => conflict('The call is not pending (any more)', 'not_waiting')

/** Returns the reason why a program may not run the call. */
async function findProblem({ db }: Deps, turnId: string, callId: string): Promise<DomainError | undefined> {
  const act = await readAct(db, turnId)
  const call = act && pendingCalls(act).find(({ id }) => id === callId)
  if (call === undefined) return notPending()
  if (call.policy !== 'requires_approval' && call.name !== QUESTION_TOOL) return undefined
  return invalid('tool_call_id: is a call that only a person answers; calls of client tools can be leased')
}

async function heldByAnother({ db }: Deps, turnId: string, callId: string): Promise<DomainError> {
  const [left] = await db.$queryRaw<{ seconds: number }[]>`
    SELECT extract(epoch FROM expires_at - clock_timestamp())::float AS seconds FROM tool_call_leases
    WHERE turn_id = ${turnId}::uuid AND tool_call_id = ${callId}`
  const retryAfterSeconds = Math.max(1, Math.ceil(left?.seconds ?? 0))
  return new DomainError('conflict', 'The call is leased to another holder; try again', { retryAfterSeconds })
}
