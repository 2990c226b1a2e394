import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from '@temporalio/client'
import { createStallWatch } from './stall.ts'

/**
 * Program of the thread that sends the heartbeats of the process's activities while the main thread's event loop is
 * blocked. It stops with the process, so a killed or frozen process is still found missing.
 */

export type HeartbeatThreadData = {
  address: string
  namespace: string
  identity: string
  /** Counter that the main thread raises as long as its event loop turns. */
  beats: SharedArrayBuffer
}

/** Announces the begin or the end of an activity, by its task token in base64. */
export type HeartbeatMessage = { begun: string } | { ended: string }

const LOOK_MS = 500
const CALL_TIMEOUT_MS = 2000

const { address, namespace, identity, beats } = workerData as HeartbeatThreadData
const connection = Connection.lazy({ address })
const running = new Set<string>()
const underWay = new Set<string>()

parentPort?.on('message', (message: HeartbeatMessage) => {
  if ('begun' in message) running.add(message.begun)
  else running.delete(message.ended)
})

const withLimit = <T>(work: () => Promise<T>) => connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, work)

/** Sends one heartbeat. Its failure is left to the main thread's own heartbeats, which meet it too. */
async function heartbeat(token: string): Promise<void> {
  if (underWay.has(token)) return
  underWay.add(token)
  const taskToken = Buffer.from(token, 'base64')
  await withLimit(() =>
    connection.workflowService.recordActivityTaskHeartbeat({ namespace, identity, taskToken }),
  ).catch(() => {})
  underWay.delete(token)
}

const counter = new Int32Array(beats)
const isStalled = createStallWatch(Atomics.load(counter, 0), performance.now())
setInterval(() => {
  if (!isStalled(Atomics.load(counter, 0), performance.now())) return
  for (const token of running) void heartbeat(token)
}, LOOK_MS)

// Connects now, because a first call takes longest.
await withLimit(() => connection.workflowService.getSystemInfo({})).catch(() => {})
