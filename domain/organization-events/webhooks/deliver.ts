import { TEST_EVENT } from '../../../contract/webhooks.ts'
import type { WebhookDelivery as DeliveryRow, Webhook as WebhookRow } from '../../../prisma/generated/client.ts'
import type { LaneOutcome } from '../../../workflows/messages.ts'
import { backOffMs } from './back-off.ts'
import { bodyOf } from './body.ts'
import type { Deps, LanePlace } from './deps.ts'
import { closeLane, leaveLane, type TakenLane, takeLane, wakeLanesSoon } from './lanes.ts'
import { GONE_SENTENCE, type Sent, send } from './send.ts'

const DISABLED = 'The webhook is disabled.'

/**
 * Attempts the oldest pending delivery of a lane, unless it is not due yet. Several attempts may run at once after a
 * process was wrongly presumed dead; only the latest counts.
 */
export async function deliverNext(deps: Deps, place: LanePlace, signal: AbortSignal): Promise<LaneOutcome> {
  const lane = await takeLane(deps, place)
  const webhook = await findWebhook(deps, lane)
  if (webhook === null) {
    await failPending(deps, lane)
    return close(deps, lane)
  }
  const head = await readHead(deps, lane)
  if (head === undefined) return close(deps, lane)
  if (head.dueInMs > 0) return retryIn(deps, lane, head.dueInMs)
  const attempt = await begin(deps, head, head.body ?? (await bodyOf(deps, lane.organizationId, head)))
  // It was delivered, or is being delivered, by another attempt.
  if (attempt === undefined) return { outcome: 'next' }
  const { timestamp, body } = attempt
  const hasFormerSecret = webhook.formerSecretUntil !== null && webhook.formerSecretUntil.getTime() > timestamp * 1000
  const sent = await send(deps, { webhook, hasFormerSecret, deliveryId: head.id, timestamp, body }, signal)
  return settle(deps, lane, { ...head, ...attempt, url: webhook.url }, sent)
}

const findWebhook = ({ db }: Deps, { webhookId: id, organizationId }: LanePlace): Promise<WebhookRow | null> =>
  db.webhook.findFirst({ where: { id, enabled: true, organization: { id: organizationId, deletedAt: null } } })

type Head = Pick<DeliveryRow, 'position' | 'id' | 'type' | 'event' | 'body'> & { dueInMs: number }

async function readHead({ db }: Deps, { webhookId, laneId }: LanePlace): Promise<Head | undefined> {
  const [head] = await db.$queryRaw<Head[]>`
    SELECT position, id, type, event, body,
      greatest(extract(epoch FROM next_attempt_at - clock_timestamp()) * 1000, 0)::float8 AS "dueInMs"
    FROM webhook_deliveries
    WHERE webhook_id = ${webhookId}::uuid AND lane_id = ${laneId}::uuid AND status = 'pending'
    ORDER BY position LIMIT 1`
  return head
}

type Attempt = { attempts: number; body: string; timestamp: number; ageMs: number }

/**
 * Counts an attempt, and keeps the body of the first. Times are the database's: the clock of this machine may be wrong.
 */
async function begin({ db }: Deps, { position }: Head, body: string): Promise<Attempt | undefined> {
  const [attempt] = await db.$queryRaw<Attempt[]>`
    UPDATE webhook_deliveries
    SET attempts = attempts + 1, body = coalesce(body, ${body}), last_attempt_at = clock_timestamp()
    WHERE position = ${position} AND status = 'pending'
    RETURNING attempts, body, extract(epoch FROM last_attempt_at)::integer AS timestamp,
      (extract(epoch FROM clock_timestamp() - begun_at) * 1000)::float8 AS "ageMs"`
  return attempt
}

/**
 * Records the outcome of an attempt. If it failed while its webhook got another address, or its delivery was asked for,
 * that is attempted at once instead.
 */
async function settle(
  deps: Deps,
  lane: TakenLane,
  attempted: Head & Attempt & { url: string },
  sent: Sent,
): Promise<LaneOutcome> {
  const { position, attempts, ageMs, type, url } = attempted
  const isLast = sent.error === null || sent.isGone || type === TEST_EVENT
  const afterMs = isLast ? undefined : backOffMs({ attempts, ageMs, retryAfterMs: sent.retryAfterMs }, Math.random())
  const status = sent.error === null ? 'delivered' : afterMs === undefined ? 'failed' : 'pending'
  const settled = await deps.db.$executeRaw`
    UPDATE webhook_deliveries SET status = ${status}::webhook_delivery_status, http_status = ${sent.httpStatus},
      error = ${sent.error},
      next_attempt_at = clock_timestamp() + make_interval(secs => ${afterMs === undefined ? null : afterMs / 1000}::float8),
      finished_at = CASE WHEN ${afterMs === undefined} THEN clock_timestamp() END
    WHERE position = ${position} AND attempts = ${attempts} AND status = 'pending' AND (
      ${sent.error === null} OR next_attempt_at <= last_attempt_at
      AND EXISTS (SELECT FROM webhooks WHERE id = webhook_id AND url = ${url})
    )`
  if (settled === 0) return { outcome: 'next' }
  if (sent.isGone) await disable(deps, lane, url)
  if (afterMs !== undefined) return retryIn(deps, lane, afterMs)
  return close(deps, lane)
}

/** Disables a webhook, unless it has another address by now. */
async function disable(deps: Deps, { webhookId: id }: LanePlace, url: string): Promise<void> {
  const data = { enabled: false, disabledReason: GONE_SENTENCE, updatedAt: new Date() }
  await deps.db.webhook.updateMany({ where: { id, url, enabled: true }, data })
  deps.log.info({ webhook: id }, 'webhook disabled: its receiver answered 410')
  await wakeLanesSoon(deps, id)
}

/** Fails what is pending for a webhook that is disabled or deleted, unless it was enabled since. */
async function failPending({ db }: Deps, { webhookId, laneId }: LanePlace): Promise<void> {
  await db.$executeRaw`
    UPDATE webhook_deliveries
    SET status = 'failed', error = coalesce(error, ${DISABLED}), next_attempt_at = NULL, finished_at = clock_timestamp()
    WHERE webhook_id = ${webhookId}::uuid AND lane_id = ${laneId}::uuid AND status = 'pending' AND NOT EXISTS (
      SELECT FROM webhooks w JOIN organizations o ON o.id = w.organization_id
      WHERE w.id = ${webhookId}::uuid AND w.enabled AND o.deleted_at IS NULL
    )`
}

async function retryIn(deps: Deps, lane: TakenLane, afterMs: number): Promise<LaneOutcome> {
  await leaveLane(deps, lane, afterMs)
  return { outcome: 'retry', afterMs: Math.ceil(afterMs) }
}

const close = async (deps: Deps, lane: LanePlace): Promise<LaneOutcome> => ({
  outcome: (await closeLane(deps, lane)) ? 'next' : 'done',
})
