import { defineSearchAttributeKey, type SearchAttributePair } from '@temporalio/common'
import {
  CancellationScope,
  ChildWorkflowCancellationType,
  executeChild,
  ParentClosePolicy,
  workflowInfo,
} from '@temporalio/workflow'
import { type ToolOutcome, TURN_WORKFLOW } from './messages.ts'

/**
 * Runs the turn of an agent that a call asks, as a child workflow, which is cancelled with this one. Its outcome is in the
 * record. Throws only when this workflow is cancelled.
 */
export async function runChild(
  { turn, agentId }: Extract<ToolOutcome, { outcome: 'child' }>,
  tool: string,
): Promise<void> {
  const labels = labelsOf(turn.sessionId, agentId)
  try {
    await executeChild(TURN_WORKFLOW, {
      workflowId: turn.turnId,
      args: [turn],
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      cancellationType: ChildWorkflowCancellationType.TRY_CANCEL,
      workflowTaskTimeout: workflowInfo().taskTimeoutMs,
      staticSummary: `${tool} · turn of ${turn.sessionId}`,
      ...(labels.length > 0 && { typedSearchAttributes: labels }),
      memo: {
        session_id: turn.sessionId,
        organization_id: turn.organizationId,
        ...(agentId !== null && { agent_id: agentId }),
      },
    })
  } catch (error) {
    if (CancellationScope.current().consideredCancelled) throw error
  }
}

/** Returns the search attributes of a child: as many as its parent has, because Temporal may not know them. */
function labelsOf(sessionId: string, agentId: string | null): SearchAttributePair[] {
  const { typedSearchAttributes } = workflowInfo()
  return typedSearchAttributes.getAll().flatMap(({ key, value }): SearchAttributePair[] => {
    if (key.name === 'OrganizationId') return [{ key, value } as SearchAttributePair]
    const id = key.name === 'SessionId' ? sessionId : key.name === 'AgentId' ? agentId : null
    return id === null ? [] : [{ key: defineSearchAttributeKey(key.name, 'KEYWORD'), value: id }]
  })
}
