import type { Webhook, WebhookDelivery } from '../../../contract/webhooks.ts'
import type { WebhookDelivery as DeliveryRow, Webhook as WebhookRow } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'

export const presentWebhook = (row: WebhookRow): Webhook => ({
  id: toId('webhook', row.id),
  url: row.url,
  // Parsed when they were written.
  events: row.events as Webhook['events'],
  agent_id: row.agentId && toId('agent', row.agentId),
  description: row.description,
  enabled: row.enabled,
  disabled_reason: row.disabledReason,
  former_secret_until:
    row.formerSecretUntil && row.formerSecretUntil > new Date() ? row.formerSecretUntil.toISOString() : null,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** Columns of an event, as queue_webhook_deliveries copies them. */
export type QueuedEvent = {
  agent_id: string | null
  session_id: string | null
  turn_id: string | null
  data: Record<string, unknown>
  created_at: string
}

/** Delivery without its body, which may be large. */
export type DeliverySummary = Omit<DeliveryRow, 'body' | 'event' | 'laneId' | 'begunAt'> & {
  event: Omit<QueuedEvent, 'data'>
}

export const presentDelivery = ({ event, ...row }: DeliverySummary): WebhookDelivery => ({
  id: toId('delivery', row.id),
  webhook_id: toId('webhook', row.webhookId),
  // Only these types are queued.
  type: row.type as WebhookDelivery['type'],
  agent_id: event.agent_id && toId('agent', event.agent_id),
  session_id: event.session_id && toId('session', event.session_id),
  turn_id: event.turn_id && toId('turn', event.turn_id),
  status: row.status,
  attempts: row.attempts,
  http_status: row.httpStatus,
  error: row.error,
  created_at: row.createdAt.toISOString(),
  last_attempt_at: row.lastAttemptAt?.toISOString() ?? null,
  next_attempt_at: row.nextAttemptAt?.toISOString() ?? null,
  finished_at: row.finishedAt?.toISOString() ?? null,
})
