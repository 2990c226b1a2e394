import type { Deps as Below } from '../turns/deps.ts'
import type { Clock } from './clock/clock.ts'
import type { ExecutionControl } from './clock/execution-workflows.ts'

export type Deps = Below & {
  workflows: ExecutionControl
  /** The clock of the schedules. */
  clock: Clock
  quotas: { schedules: ScheduleQuotas }
}

/** Maximum numbers of an organization's schedules and of its concurrent executions. */
export type ScheduleQuotas = { maxCount: number; maxRunning: number }
