import type { Deps as Below } from '../organization-events/webhooks/deps.ts'
import type { TemporalHealthReader } from './health/health.ts'

export type Deps = Below & {
  workflows: { readHealth: TemporalHealthReader }
  retention: Retention
}

/**
 * Retention times. Sessions are kept since something happened in them, 0 for ever. Deltas are kept after their message is
 * complete, executions, deliveries and organizations' events after they were recorded.
 */
export type Retention = {
  sessionsMs: number
  deltasMs: number
  idempotencyKeysMs: number
  executionsMs: number
  organizationEventsMs: number
  deliveriesMs: number
}
