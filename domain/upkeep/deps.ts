import type { Deps as Below } from '../organization-events/webhooks/deps.ts'
import type { TemporalHealthReader } from './health/health.ts'

export type Deps = Below & {
  workflows: { readHealth: TemporalHealthReader }
  retention: Retention
}

/**
 * Retention times. Sessions are kept since something happened in them, 0 for ever. Deltas are kept after their message is
 * complete, executions, deliveries, organizations' events and entries of the audit log after they were recorded; 0 keeps
 * the latter for ever.
 */
export type Retention = {
  sessionsMs: number
  deltasMs: number
  idempotencyKeysMs: number
  executionsMs: number
  organizationEventsMs: number
  deliveriesMs: number
  auditMs: number
}
