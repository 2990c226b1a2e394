import type { Deps as Below } from '../schedules/deps.ts'
import type { TemporalHealthReader } from './health/health.ts'

export type Deps = Below & {
  workflows: { readHealth: TemporalHealthReader }
  retention: Retention
}

/**
 * Retention times. Deltas are kept after their message is complete, executions after they were recorded.
 */
export type Retention = { deltasMs: number; idempotencyKeysMs: number; executionsMs: number }
