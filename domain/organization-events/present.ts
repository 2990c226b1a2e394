import type { OrganizationEvent, OrganizationEventType } from '../../contract/organization-events.ts'
import type { OrganizationEvent as Row } from '../../prisma/generated/client.ts'
import { toId } from '../kit/ids.ts'
import type { Deps } from '../turns/deps.ts'
import { readTurns } from '../turns/read.ts'

/** Events without the number that only readers of the stream need. */
export type Presented = Omit<OrganizationEvent, 'id'>

/** Presents events of one organization, in their order. A turn is read anew: an event holds only its id. */
export async function presentOrganizationEvents(
  deps: Deps,
  organizationId: string,
  rows: Omit<Row, 'sequence'>[],
): Promise<Presented[]> {
  const turns = await readTurns(deps, organizationId, [...new Set(rows.flatMap(({ turnId }) => turnId ?? []))])
  return rows.map(({ turnId, agentId, sessionId, createdAt, type, data }) => ({
    // Only these types are stored.
    type: type as OrganizationEventType,
    timestamp: createdAt.toISOString(),
    agent_id: agentId && toId('agent', agentId),
    session_id: sessionId && toId('session', sessionId),
    turn_id: turnId && toId('turn', turnId),
    data: turnId === null ? (data as Record<string, unknown>) : { turn: turns.get(turnId) ?? null },
  }))
}
