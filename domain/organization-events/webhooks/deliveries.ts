import type { WebhookId } from '../../../contract/kit/ids.ts'
import {
  type OfDelivery,
  TEST_EVENT,
  type WebhookDelivery,
  type WebhookDeliveryStatus,
} from '../../../contract/webhooks.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { createOnce } from '../../kit/create-once.ts'
import { conflict, notFound } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import type { Deps } from './deps.ts'
import { type DeliverySummary, presentDelivery, type QueuedEvent } from './present.ts'
import { requireWebhook } from './read.ts'

const DELIVERIES_AT_ONCE = 100

type Part = { status?: WebhookDeliveryStatus | undefined; limit: number; offset: number }

/** Lists a webhook's deliveries, newest first. Throws `not_found`. */
export async function listDeliveries(
  deps: Deps,
  actor: Actor,
  id: WebhookId,
  { status, ...part }: Part,
): Promise<Pages<WebhookDelivery>> {
  const webhook = await requireWebhook(deps, actor, id)
  const ofStatus = status === undefined ? Prisma.empty : Prisma.sql`AND status = ${status}::webhook_delivery_status`
  return pages({
    ...part,
    atOnce: DELIVERIES_AT_ONCE,
    read: async ({ after, skip, take }: PageStart<DeliverySummary>) => {
      const older = after === undefined ? Prisma.empty : Prisma.sql`AND position < ${after.position}`
      const rows = await readSummaries(
        deps,
        Prisma.sql`webhook_id = ${webhook.id}::uuid ${ofStatus} ${older} ORDER BY position DESC LIMIT ${take} OFFSET ${skip}`,
      )
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map(presentDelivery),
  })
}

/** Reads deliveries without what they send. */
const readSummaries = (deps: Deps, which: Prisma.Sql) => deps.db.$queryRaw<DeliverySummary[]>`
  SELECT position, id, webhook_id AS "webhookId", type, event - 'data' AS event, status::text, attempts,
    http_status AS "httpStatus", error, created_at AS "createdAt", last_attempt_at AS "lastAttemptAt",
    next_attempt_at AS "nextAttemptAt", finished_at AS "finishedAt"
  FROM webhook_deliveries WHERE ${which}`

/** Throws `not_found`. */
async function getDelivery(deps: Deps, webhookId: string, id: string): Promise<WebhookDelivery> {
  const [row] = await readSummaries(deps, Prisma.sql`id = ${id}::uuid AND webhook_id = ${webhookId}::uuid`)
  if (row === undefined) throw notFound('Delivery')
  return presentDelivery(row)
}

/** Queues a test, which overtakes pending deliveries. Throws `not_found`, and `conflict` for a disabled webhook. */
export async function testWebhook(
  deps: Deps,
  actor: Actor,
  webhookId: WebhookId,
  attempt: CreationAttempt,
): Promise<WebhookDelivery> {
  requireEnabled(await requireWebhook(deps, actor, webhookId))
  const find = (id: string) => deps.db.webhookDelivery.findFirst({ where: { id, webhookId }, select: { id: true } })
  const { id } = await createOnce(attempt, {
    find,
    insert: async (id) => {
      const none = { agent_id: null, session_id: null, turn_id: null }
      const event: QueuedEvent = { ...none, data: {}, created_at: new Date().toISOString() }
      await deps.db.$executeRaw`
        SELECT queue_webhook_delivery(${webhookId}::uuid, ${id}::uuid, ${id}::uuid, ${TEST_EVENT}, ${JSON.stringify(event)}::jsonb)`
      return { id }
    },
  })
  return getDelivery(deps, webhookId, id)
}

/**
 * Delivers again, or attempts a pending delivery at once. Throws `not_found`, and `conflict` for a disabled webhook.
 */
export async function redeliver(
  deps: Deps,
  actor: Actor,
  { webhook_id: webhookId, delivery_id: id }: OfDelivery,
): Promise<WebhookDelivery> {
  const webhook = await requireWebhook(deps, actor, webhookId)
  await getDelivery(deps, webhookId, id)
  requireEnabled(webhook)
  await deps.db.$executeRaw`
    WITH renewed AS (
      UPDATE webhook_deliveries SET status = 'pending', next_attempt_at = clock_timestamp(), finished_at = NULL,
        begun_at = CASE WHEN status = 'pending' THEN begun_at ELSE clock_timestamp() END
      WHERE id = ${id}::uuid AND webhook_id = ${webhookId}::uuid
      RETURNING webhook_id, lane_id
    )
    INSERT INTO webhook_lanes (webhook_id, id) SELECT webhook_id, lane_id FROM renewed
    ON CONFLICT (webhook_id, id) DO UPDATE SET due_at = excluded.due_at`
  return getDelivery(deps, webhookId, id)
}

function requireEnabled({ enabled }: { enabled: boolean }): void {
  if (!enabled) throw conflict('The webhook is disabled; PATCH its enabled to true first')
}
