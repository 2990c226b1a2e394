import type { Deps as Below } from '../schedules/deps.ts'
import type { TemporalHealthReader } from './health/health.ts'

export type Deps = Below & {
  workflows: { readHealth: TemporalHealthReader }
  retention: Retention
}

/**
 * Retention times. Those of deltas count from the moment at which their message is complete, those of executions from
 * when they were recorded.
 */
export type Retention = { deltasMs: number; idempotencyKeysMs: number; executionsMs: number }
