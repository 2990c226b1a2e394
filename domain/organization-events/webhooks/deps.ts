import type { Deps as Below } from '../../schedules/deps.ts'

export type Deps = Below & {
  workflows: WebhookControl
  quotas: { webhooks: number }
}

/** Deliveries of a webhook that are made one after the other: of one session, of no session, or a test. Plain UUIDs. */
export type LanePlace = { organizationId: string; webhookId: string; laneId: string }

export type WebhookControl = {
  /**
   * Starts the workflow of a lane, or makes a running one read the record again, a few of an owner at a time. Rejects when
   * Temporal is away.
   */
  wakeWebhook(lane: LanePlace, owner: string): Promise<void>
}
