import type { Client } from '@temporalio/client'
import type { Logger } from 'pino'
import type { Executions, TemporalHealth, TemporalHealthReader } from '../../domain/upkeep/health/health.ts'
import { EXECUTION_WORKFLOW, TURN_WORKFLOW } from '../../workflows/messages.ts'

/**
 * Age of the last poll up to which a worker counts. Temporal lists pollers for five minutes, each with the start of its
 * last poll, which lasts up to 60 s. A worker that died within this time still counts, because Temporal cannot tell
 * either.
 */
const POLLED_WITHIN_MS = 75_000
const HOUR_MS = 3_600_000

/** temporal.api.enums.v1.TaskQueueType, TaskQueueKind and DescribeTaskQueueMode */
const WORKFLOW = 1
const ACTIVITY = 2
const NORMAL = 1
const ENHANCED = 1

/** Runs a call to Temporal on the current connection, with the time limit. */
export type Ask = <T>(work: (client: Client) => Promise<T>) => Promise<T>

type QueueAddress = { namespace: string; taskQueue: string }

export function createHealthReader(ask: Ask, place: QueueAddress, log: Logger): TemporalHealthReader {
  const turns = `WorkflowType = '${TURN_WORKFLOW}'`
  const executions = `WorkflowType = '${EXECUTION_WORKFLOW}'`
  const askOrNull = <T>(what: string, work: (client: Client) => Promise<T>): Promise<T | null> =>
    ask(work).catch((error: Error) => {
      log.debug({ what, err: error.message }, 'Temporal query failed')
      return null
    })
  return async () => {
    const [queue, turnCounts, executionCounts] = await Promise.all([
      askOrNull('task queue', (client) => describeQueue(client, place)),
      askOrNull('turns', (client) => countExecutions(client, place, turns)),
      askOrNull('executions', (client) => countExecutions(client, place, executions)),
    ])
    return {
      workers: queue?.workers ?? null,
      backlog: queue?.backlog ?? null,
      turns: turnCounts,
      executions: executionCounts,
    }
  }
}

/**
 * Describes the task queue in the enhanced mode. The mode is deprecated, but only it reports all pollers: the other mode
 * lists the pollers of one partition, and a server has four by default. A server without the mode answers for workflow
 * tasks only.
 */
async function describeQueue(
  { workflowService }: Client,
  { namespace, taskQueue }: QueueAddress,
): Promise<Pick<TemporalHealth, 'workers' | 'backlog'>> {
  const { versionsInfo, ...simple } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: taskQueue, kind: NORMAL },
    apiMode: ENHANCED,
    taskQueueTypes: [WORKFLOW, ACTIVITY],
    reportPollers: true,
    reportStats: true,
  })
  const types = Object.values(versionsInfo ?? {}).flatMap(({ typesInfo }) => Object.values(typesInfo ?? {}))
  const queues = types.length > 0 ? types : [simple]
  const since = Date.now() - POLLED_WITHIN_MS
  const pollers = queues.flatMap((queue) => queue.pollers ?? [])
  const recent = pollers.filter(({ lastAccessTime }) => toMs(lastAccessTime) > since)
  return { workers: new Set(recent.map(({ identity }) => identity)).size, backlog: sumBacklogs(queues) }
}

type Timespan = { seconds?: unknown; nanos?: number | null } | null | undefined
const toMs = (time: Timespan): number => Number(time?.seconds ?? 0) * 1000 + (time?.nanos ?? 0) / 1e6

type QueueStats = { approximateBacklogCount?: unknown; approximateBacklogAge?: Timespan }

function sumBacklogs(queues: { stats?: QueueStats | null }[]): TemporalHealth['backlog'] {
  const sum = { tasks: 0, oldestMs: 0 }
  for (const { stats } of queues) {
    if (!stats) return null
    sum.tasks += Number(stats.approximateBacklogCount ?? 0)
    sum.oldestMs = Math.max(sum.oldestMs, toMs(stats.approximateBacklogAge))
  }
  return sum
}

/**
 * Names of Temporal's statuses. ContinuedAsNew is not among them, because a workflow that continues in a new run has
 * not ended.
 */
const RUNNING = ['Running', 'Paused']
const FAILED = ['Failed', 'TimedOut', 'Terminated']
const ENDED = [...FAILED, 'Completed', 'Canceled']

async function countExecutions(client: Client, { taskQueue }: QueueAddress, which: string): Promise<Executions> {
  const since = new Date(Date.now() - HOUR_MS).toISOString()
  const { groups } = await client.workflow.count(
    `TaskQueue = '${taskQueue.replaceAll("'", "''")}' AND ${which} ` +
      `AND (CloseTime IS NULL OR CloseTime > '${since}') GROUP BY ExecutionStatus`,
  )
  const countOf = (statuses: string[]) =>
    groups.reduce((sum, { count, groupValues }) => sum + (statuses.includes(String(groupValues)) ? count : 0), 0)
  return { running: countOf(RUNNING), failed: countOf(FAILED), ended: countOf(ENDED) }
}
