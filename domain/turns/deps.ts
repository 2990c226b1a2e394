import type { Deps as Below } from '../agents/deps.ts'
import type { TurnCaps } from '../agents/turn-caps.ts'
import type { CallScope } from '../kit/session-scope.ts'
import type { SessionSchedules } from '../tools/capabilities/session-schedules.ts'
import type { ChildTurns } from './child-turns.ts'
import type { DeltaClock } from './run/delta-clock.ts'
import type { RunningAttempts } from './run/running-attempts.ts'
import type { TurnControl, TurnStarter } from './turn-workflows.ts'

export type Deps = Below & {
  workflows: TurnControl & { startTurn: TurnStarter }
  /** Attempts at reason steps in this process. */
  attempts: RunningAttempts
  deltaClock: DeltaClock
  /** Opens the schedules that a session's tool calls have made, for a tool call. */
  openSchedules: (scope: CallScope) => SessionSchedules
  children: ChildTurns
  limits: TurnLimits
}

export type TurnLimits = TurnCaps & {
  /** Time that a turn waits for the results of a client's tools. */
  clientToolTimeoutMs: number
  /** Time for which a program holds a pending call of a client's tool, unless it renews its lease. */
  toolCallLeaseMs: number
  /** Time that a model may send nothing before its call counts as failed. */
  modelIdleTimeoutMs: number
  /** Number of model calls that a process makes at once. One owner gets at most four fifths. */
  maxModelCalls: number
  /** Time limit of a model call. */
  modelCallMs: number
  /** Age of a turn, without the time in which it waits for its client, beyond which it makes no further model call. */
  maxTurnMs: number
  /** Whether budgets in USD let calls with an unknown price pass. */
  mayBeUnpriced: boolean
  /** Time without an event after which an active turn counts as stalled. */
  turnStalledMs: number
}
