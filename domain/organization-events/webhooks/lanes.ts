import { atOnce } from '../../../lib/at-once.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { Deps, LanePlace } from './deps.ts'

/** Number of lanes that a sweep wakes, and of those at once. */
const LIMIT = 500
const AT_ONCE = 16
/** Time in which a sweep wakes the lanes that it has found. */
const STARTS_MS = 15_000
/** Time after which a lane whose start failed is tried again. */
const AGAIN_MS = 2000
/** Time for which the sweeps leave a lane to its workflow, beyond the time until its next attempt. */
const LEFT_MS = 5 * 60_000

/** Lane that a sweep or its workflow has taken. `dueAt`: when the sweeps wake it; null if it was due already. */
export type TakenLane = LanePlace & { dueAt: Date | null }

/**
 * Starts the workflows of lanes that are due: a delivery is new, or is to be made at once, or the workflow was lost. Meant
 * to be called periodically, by all processes. Returns the number of lanes.
 */
export async function wakeDueLanes(deps: Deps): Promise<number> {
  const due = await deps.db.$queryRaw<TakenLane[]>`
    UPDATE webhook_lanes AS lane SET due_at = clock_timestamp() + make_interval(secs => ${STARTS_MS / 1000})
    FROM (
      SELECT webhook_id, id FROM webhook_lanes WHERE due_at <= clock_timestamp()
      ORDER BY due_at LIMIT ${LIMIT} FOR NO KEY UPDATE SKIP LOCKED
    ) AS found JOIN webhooks w ON w.id = found.webhook_id
    WHERE lane.webhook_id = found.webhook_id AND lane.id = found.id
    RETURNING w.organization_id AS "organizationId", lane.webhook_id AS "webhookId", lane.id AS "laneId",
      lane.due_at AS "dueAt"`
  await atOnce(due, AT_ONCE, async (lane) => {
    try {
      await deps.workflows.wakeWebhook(lane, await deps.owners.ownerOf(lane.organizationId))
      // Its workflow may wait for a place among the webhook's requests.
      await leaveLane(deps, lane)
    } catch (error) {
      const logFields = { webhook: lane.webhookId, err: (error as Error).message }
      warnRarely(deps.log, logFields, 'deliveries of a webhook not started; they will be')
      await leaveLane(deps, lane, AGAIN_MS - LEFT_MS)
    }
  })
  return due.length
}

/** Takes a lane whose record is about to be read, unless it is due: the sweeps may know that its workflow is lost. */
export async function takeLane({ db }: Deps, lane: LanePlace): Promise<TakenLane> {
  const [taken] = await db.$queryRaw<{ dueAt: Date }[]>`
    UPDATE webhook_lanes SET due_at = clock_timestamp() + make_interval(secs => ${LEFT_MS / 1000})
    WHERE webhook_id = ${lane.webhookId}::uuid AND id = ${lane.laneId}::uuid AND due_at > clock_timestamp()
    RETURNING due_at AS "dueAt"`
  return { ...lane, dueAt: taken?.dueAt ?? null }
}

/**
 * Leaves a lane to its workflow until some minutes after the next attempt. Not a lane that another took or asked for since:
 * it may also be a new one, which the workflow does not know.
 */
export async function leaveLane({ db }: Deps, { webhookId, laneId, dueAt }: TakenLane, nextInMs = 0): Promise<void> {
  await db.$executeRaw`
    UPDATE webhook_lanes SET due_at = clock_timestamp() + make_interval(secs => ${(nextInMs + LEFT_MS) / 1000})
    WHERE webhook_id = ${webhookId}::uuid AND id = ${laneId}::uuid AND due_at = ${dueAt}::timestamptz`
}

/** Has all lanes of a webhook read the record again, and attempt at once what waits for its next attempt. */
export async function wakeLanesSoon({ db }: Deps, webhookId: string): Promise<void> {
  await db.$executeRaw`
    UPDATE webhook_deliveries SET next_attempt_at = clock_timestamp()
    WHERE webhook_id = ${webhookId}::uuid AND status = 'pending' AND next_attempt_at > clock_timestamp()`
  await db.$executeRaw`UPDATE webhook_lanes SET due_at = clock_timestamp() WHERE webhook_id = ${webhookId}::uuid`
}

/** Removes a lane that has nothing to deliver. True if it has. */
export async function closeLane({ db }: Deps, { webhookId, laneId }: LanePlace): Promise<boolean> {
  const [row] = await db.$queryRaw<{ goes_on: boolean }[]>`
    SELECT close_webhook_lane(${webhookId}::uuid, ${laneId}::uuid) AS goes_on`
  return row?.goes_on === true
}
