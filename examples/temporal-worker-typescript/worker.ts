/**
 * A Temporal worker whose activities and workflows are tools of agents.
 *
 *   npm install @temporalio/activity @temporalio/common @temporalio/proto @temporalio/worker @temporalio/workflow
 *   TASK_QUEUE_KEY=<key> node worker.ts
 */
import { fileURLToPath } from 'node:url'
import { heartbeat, sleep } from '@temporalio/activity'
import { NativeConnection, Worker } from '@temporalio/worker'
import { createCodec } from './codec.ts'

const { TEMPORAL_ADDRESS: address = 'localhost:7233', TEMPORAL_NAMESPACE: namespace = 'default' } = process.env
const { TASK_QUEUE: taskQueue = 'warehouse', TASK_QUEUE_KEY: key = '' } = process.env
const fileOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** A tool is a function. Its heartbeats are the progress that users see, and what it throws is told to the model. */
const activities = {
  async count_stock({ article }: { article: string }) {
    for (const shelf of [1, 2, 3]) {
      heartbeat({ progress: shelf, total: 3, message: `shelf ${shelf}` })
      await sleep(600)
    }
    if (article === 'unicorn') throw new Error('There is no article "unicorn".')
    return { article, pieces: 42 }
  },
}

const connection = await NativeConnection.connect({ address })
const worker = await Worker.create({
  connection,
  namespace,
  taskQueue,
  activities,
  // Heartbeats are sent this often at most; the default is half a minute.
  maxHeartbeatThrottleInterval: '1 second',
  workflowsPath: fileOf('./workflows.ts'),
  dataConverter: {
    payloadCodecs: [createCodec(taskQueue, Buffer.from(key, 'base64'))],
    failureConverterPath: fileOf('./failure-converter.ts'),
  },
})
process.stdout.write(`polls ${taskQueue}\n`)
await worker.run()
await connection.close()
