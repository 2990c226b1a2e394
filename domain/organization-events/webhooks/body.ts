import { isRecord } from '../../../lib/is-record.ts'
import type { WebhookDelivery as DeliveryRow } from '../../../prisma/generated/client.ts'
import { presentOrganizationEvents } from '../present.ts'
import type { Deps } from './deps.ts'
import type { QueuedEvent } from './present.ts'

/** Size from which the arguments of calls are left out of a body, and then all of them. */
const MAX_BYTES = 256 * 1024
const MAX_ARGUMENTS_BYTES = 4 * 1024

type Queued = Pick<DeliveryRow, 'position' | 'type' | 'event'>

/**
 * Returns the body of a delivery: {type, timestamp, data}. A turn is as it is now. In a body that is too large, calls have
 * `arguments_omitted`: true instead of large arguments.
 */
export async function bodyOf(deps: Deps, organizationId: string, { position, type, event }: Queued): Promise<string> {
  // Written by queue_webhook_deliveries.
  const { agent_id, session_id, turn_id, data, created_at } = event as QueuedEvent
  const row = {
    ...{ position, organizationId, type, createdAt: new Date(created_at) },
    ...{ agentId: agent_id, sessionId: session_id, turnId: turn_id, data: data as object },
  }
  const [presented] = await presentOrganizationEvents(deps, organizationId, [row])
  const about = { agent_id: presented?.agent_id, session_id: presented?.session_id, turn_id: presented?.turn_id }
  const body = { type, timestamp: presented?.timestamp, data: { ...about, ...presented?.data } }
  return bounded(body, MAX_ARGUMENTS_BYTES) ?? bounded(body, 0) ?? JSON.stringify({ ...body, data: about })
}

/** Returns a body as JSON, with arguments above a size left out if it is too large. Undefined if it still is. */
function bounded(body: { data: Record<string, unknown> }, maxArgumentsBytes: number): string | undefined {
  const whole = JSON.stringify(body)
  if (Buffer.byteLength(whole) <= MAX_BYTES) return whole
  const cut = JSON.stringify(body, (key, value: unknown) =>
    key === 'pending_tool_calls' && Array.isArray(value)
      ? value.map((call) => withoutArguments(call, maxArgumentsBytes))
      : value,
  )
  return Buffer.byteLength(cut) <= MAX_BYTES ? cut : undefined
}

function withoutArguments(call: unknown, maxBytes: number): unknown {
  if (!isRecord(call) || Buffer.byteLength(JSON.stringify(call.arguments)) <= maxBytes) return call
  return { ...call, arguments: {}, arguments_omitted: true }
}
