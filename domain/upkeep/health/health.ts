import type { DurableHealth } from '../../../contract/durable.ts'

/** Temporal's report on the service's task queue and its workflows; null where it reported nothing. */
export type TemporalHealth = {
  /** Number of processes that poll the queue. */
  workers: number | null
  /** Waiting tasks; `oldestMs` is the age of the oldest one. Null also on a server that does not report it. */
  backlog: { tasks: number; oldestMs: number } | null
  turns: Executions | null
  /** Workflows of schedules' executions. */
  executions: Executions | null
}

/**
 * Numbers of workflows. `ended` counts the workflows that ended within the last hour, `failed` how many of them did not
 * succeed.
 */
export type Executions = { running: number; failed: number; ended: number }

/** Numbers of turns that retry a failed model call, and that are stalled; null while the record is unavailable. */
export type ServiceHealth = TemporalHealth & { retrying: number | null; stalled: number | null }

/** Queries Temporal within a few seconds; never rejects. */
export type TemporalHealthReader = () => Promise<TemporalHealth>

const MAX_WAIT_MS = 10_000
const MAX_FAILED_SHARE = 0.1

/** Rates Temporal's health. The reasons contain no numbers, so they stay the same as long as their causes do. */
export function judgeHealth(said: ServiceHealth): DurableHealth {
  const outages = findOutages(said)
  const troubles = findTroubles(said)
  return {
    status: outages.length > 0 ? 'degraded' : troubles.length > 0 ? 'warning' : 'healthy',
    reasons: [...outages, ...troubles],
    workers: said.workers,
    task_queue_backlog: said.backlog?.tasks ?? null,
    turns: { ...presentExecutions(said.turns), retrying: said.retrying, stalled: said.stalled },
    executions: presentExecutions(said.executions),
  }
}

function findOutages({ workers, turns, executions }: TemporalHealth): string[] {
  if (workers === null && turns === null && executions === null) return ['Temporal does not answer.']
  return [
    ...(workers === null ? ['Temporal does not say who polls the task queue.'] : []),
    ...(workers === 0 ? ['No worker polls the task queue.'] : []),
    ...(turns === null ? ['Temporal does not count the turns.'] : []),
    ...(executions === null ? ['Temporal does not count the scheduled executions.'] : []),
  ]
}

function findTroubles({ backlog, turns, executions }: TemporalHealth): string[] {
  const isLate = backlog !== null && backlog.tasks > 0 && backlog.oldestMs > MAX_WAIT_MS
  return [
    ...(isLate ? ['Tasks have waited in the queue for more than 10 seconds.'] : []),
    ...(failsOften(turns) ? ['More than a tenth of the turns that ended within the last hour failed.'] : []),
    ...(failsOften(executions)
      ? ['More than a tenth of the scheduled executions that ended within the last hour failed.']
      : []),
  ]
}

const failsOften = (counts: Executions | null): boolean =>
  counts !== null && counts.failed > counts.ended * MAX_FAILED_SHARE

const presentExecutions = (counts: Executions | null) => ({
  running: counts?.running ?? null,
  failed: counts?.failed ?? null,
})
