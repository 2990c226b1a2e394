/**
 * Health check of a container that runs the worker, which serves no HTTP: exit code 0 when Temporal has lately seen
 * this container poll for activity tasks. A poller's identity is its process number and host name.
 */
import { hostname } from 'node:os'
import { Connection } from '@temporalio/client'
import { readConfig } from '../platform/config.ts'
import { temporalOptions } from '../platform/temporal/connection.ts'

const TIMEOUT_MS = 8000
/** Age up to which a poll counts. A poll that finds nothing to do returns after a minute at the latest. */
const RECENT_MS = 120_000
const ACTIVITY_TASK_QUEUE = 2

async function isPolling(): Promise<boolean> {
  const config = readConfig()
  const connection = await Connection.connect({ ...temporalOptions(config), connectTimeout: TIMEOUT_MS })
  const { pollers } = await connection.withDeadline(Date.now() + TIMEOUT_MS, () =>
    connection.workflowService.describeTaskQueue({
      namespace: config.TEMPORAL_NAMESPACE,
      taskQueue: { name: config.TEMPORAL_TASK_QUEUE },
      taskQueueType: ACTIVITY_TASK_QUEUE,
    }),
  )
  return (pollers ?? []).some(({ identity, lastAccessTime }) => {
    const seenAt = Number(lastAccessTime?.seconds ?? 0) * 1000
    return identity?.endsWith(`@${hostname()}`) === true && Date.now() - seenAt < RECENT_MS
  })
}

process.exit((await isPolling().catch(() => false)) ? 0 : 1)
