import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { NativeConnection, Runtime, Worker } from '@temporalio/worker'
import { serveParent } from './child.ts'
import { runLanes, type Turn } from './statistics.ts'

/**
 * Runs bare workflows on the Temporal under test, with worker and client in one process and eager start, like the
 * service. The client learns of the end from the workflow's result. Reads `[count, inFlight]` jobs from its parent and
 * answers each with a Result.
 */
async function main(address: string): Promise<void> {
  Runtime.install({
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    shutdownSignals: [],
  })
  const connection = await NativeConnection.connect({ address })
  const firstAt = new Map<string, number>()
  const worker = await Worker.create({
    connection,
    taskQueue: 'bench-floor',
    workflowsPath: fileURLToPath(new URL('./floor-workflow.ts', import.meta.url)),
    activities: {
      answer: async (id: string) => {
        firstAt.set(id, performance.now())
      },
    },
    maxConcurrentActivityTaskExecutions: 200,
  })
  const working = worker.run()
  const client = new Client({ connection })
  let number = 0
  const turn = async (): Promise<Turn> => {
    const id = `floor-${process.pid}-${number++}`
    const startedAt = performance.now()
    await client.workflow.execute('floor', {
      workflowId: id,
      taskQueue: 'bench-floor',
      args: [id],
      requestEagerStart: true,
    })
    const firstMs = (firstAt.get(id) ?? Number.NaN) - startedAt
    firstAt.delete(id)
    return { firstMs, wholeMs: performance.now() - startedAt }
  }
  serveParent(
    'ready',
    (job) => runLanes(...(job as [count: number, inFlight: number]), turn),
    async () => {
      worker.shutdown()
      await working
    },
  )
}

await main(process.argv[2] ?? '127.0.0.1:9303')
