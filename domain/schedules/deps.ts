import type { Deps as Below } from '../turns/deps.ts'
import type { Clock } from './clock/clock.ts'
import type { ExecutionControl } from './clock/execution-workflows.ts'

export type Deps = Below & {
  workflows: ExecutionControl
  /** The clock of the schedules. */
  clock: Clock
  quotas: { schedules: ScheduleQuotas }
}

/** Maximum number of an organization's schedules, and of its executions that run at once. */
export type ScheduleQuotas = { maxCount: number; maxRunning: number }
