import type { SessionId } from '../../../contract/kit/ids.ts'
import type { CreateMessageRequest, InputContentPart } from '../../../contract/messages.ts'
import { requireActiveAgent } from '../../agents/check.ts'
import { type Actor, NO_USER } from '../../kit/actor.ts'
import { DomainError } from '../../kit/errors.ts'
import { asUuid, fromId } from '../../kit/ids.ts'
import { createMessage } from '../../messages/create.ts'
import { createSession } from '../../sessions/create.ts'
import type { Deps } from '../deps.ts'
import type { BegunExecution } from './begun-execution.ts'
import type { SessionMessageInput } from './inputs.ts'
import type { TargetResult } from './result.ts'

/**
 * Posts the message of an execution, to a new session if the schedule names an agent. Turn and session have the
 * execution's id, so repeated runs create only one of each.
 */
export async function postMessage(deps: Deps, execution: BegunExecution, signal: AbortSignal): Promise<TargetResult> {
  const { id: uuid, organizationId, schedule } = execution
  const actor: Actor = { organizationId, userId: NO_USER, role: 'member', apiKeyId: null }
  // Parsed when it was written; erased when the session was deleted.
  const input = schedule.targetInput as Partial<SessionMessageInput>
  if (input.message === undefined) return unusable('The session of the schedule was deleted.')
  try {
    const sessionId = await findSession(deps, actor, execution, input)
    signal.throwIfAborted()
    await createMessage(deps, actor, sessionId, toRequest(execution, input.message), { uuid })
    return { outcome: 'waits' }
  } catch (error) {
    if (!(error instanceof DomainError)) throw error
    if (error.kind === 'too_many') return { outcome: 'failed', error: error.message, isTemporary: true }
    return unusable(error.message)
  }
}

const unusable = (error: string): TargetResult => ({ outcome: 'failed', error, isTemporary: false, disables: true })

/** Returns the session of an execution. Throws `invalid` for an archived agent, which acts only while people write to it. */
async function findSession(
  deps: Deps,
  actor: Actor,
  { id: uuid, schedule }: BegunExecution,
  input: Partial<SessionMessageInput>,
): Promise<SessionId> {
  if ('session_id' in input && input.session_id !== undefined) {
    const id = fromId(input.session_id)
    const where = { id, organizationId: actor.organizationId }
    const session = await deps.db.session.findFirst({ where, select: { agentId: true } })
    if (session?.agentId != null) await requireActiveAgent(deps, actor, asUuid(session.agentId), 'session_id')
    return asUuid(id)
  }
  const agentId = 'agent_id' in input && input.agent_id !== undefined ? fromId(input.agent_id) : ''
  await createSession(deps, actor, { agent_id: asUuid(agentId), title: schedule.name }, { uuid })
  return asUuid(uuid)
}

const toRequest = (
  { id, scheduleId }: BegunExecution,
  message: string | { content: InputContentPart[] },
): CreateMessageRequest => ({
  message: { content: typeof message === 'string' ? [{ type: 'text', text: message }] : message.content },
  metadata: { schedule_id: scheduleId, execution_id: id },
})
