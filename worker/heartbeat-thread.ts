import { parentPort, workerData } from 'node:worker_threads'
import type { Connection } from '@temporalio/client'
import type { PostgresSettings } from '../platform/postgres/connection.ts'
import type { TemporalSettings } from '../platform/temporal/connection.ts'
import { connectForLease } from './lease-connection.ts'
import { createStallWatch } from './stall.ts'

/**
 * Program of the thread that renews the process's lease, and sends the heartbeats of its activities, while the main
 * thread's event loop is blocked. It stops with the process, so a killed or frozen process is still found missing.
 */

export type HeartbeatThreadData = {
  temporal: TemporalSettings
  identity: string
  database: PostgresSettings
  /** Number of the process. */
  process: number
  /** Counter that the main thread raises as long as its event loop turns. */
  beats: SharedArrayBuffer
}

/** Announces the begin or the end of an activity, by its task token in base64. */
export type HeartbeatMessage = { begun: string } | { ended: string }

const LOOK_MS = 500
const CALL_TIMEOUT_MS = 2000

const { temporal, identity, database, process: number, beats } = workerData as HeartbeatThreadData
const lease = connectForLease(database, number)
let connecting: Promise<Connection> | undefined
const running = new Set<string>()
const underWay = new Set<string>()

parentPort?.on('message', (message: HeartbeatMessage) => {
  if ('begun' in message) running.add(message.begun)
  else running.delete(message.ended)
})

/** Loads the library when the main thread is first blocked: it takes half a second of CPU, and tens of megabytes. */
async function connect(): Promise<Connection> {
  const { Connection } = await import('@temporalio/client')
  const { temporalOptions } = await import('../platform/temporal/connection.ts')
  return Connection.lazy(temporalOptions(temporal))
}

/** Sends one heartbeat. Its failure is left to the main thread's own heartbeats, which meet it too. */
async function heartbeat(token: string): Promise<void> {
  if (underWay.has(token)) return
  underWay.add(token)
  const taskToken = Buffer.from(token, 'base64')
  try {
    connecting ??= connect()
    const connection = await connecting
    await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      connection.workflowService.recordActivityTaskHeartbeat({
        namespace: temporal.TEMPORAL_NAMESPACE,
        identity,
        taskToken,
      }),
    )
  } catch {
    // Left to the next look.
  }
  underWay.delete(token)
}

let isRenewing = false

/** Renews the lease of the process. A failure is left to the next look. */
async function renewLease(): Promise<void> {
  if (isRenewing) return
  isRenewing = true
  await lease.renew().catch(() => {})
  isRenewing = false
}

const counter = new Int32Array(beats)
const isStalled = createStallWatch(Atomics.load(counter, 0), performance.now())
setInterval(() => {
  if (!isStalled(Atomics.load(counter, 0), performance.now())) return
  void renewLease()
  for (const token of running) void heartbeat(token)
}, LOOK_MS)
