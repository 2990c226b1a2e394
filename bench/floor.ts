import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { bundleWorkflowCode, NativeConnection, Runtime, Worker } from '@temporalio/worker'
import { serveParent } from './child.ts'
import { runLanes, type Turn } from './statistics.ts'

/** Workflow to run, how often, and how many at a time. */
export type FloorJob = { workflow: 'floor' | 'localFloor'; count: number; inFlight: number }

const silent = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }
const TASK_QUEUE = 'bench-floor'
const POLLERS = { type: 'autoscaling', minimum: 1, initial: 1, maximum: 10 } as const

/**
 * Runs bare workflows on a Temporal, with worker and client in one process and eager start, like the service, and with
 * the settings of its worker. The client learns of the end from the workflow's result. Answers each FloorJob with Times.
 */
async function main(address: string): Promise<void> {
  Runtime.install({ logger: silent, shutdownSignals: [] })
  const connection = await NativeConnection.connect({ address })
  const firstAt = new Map<string, number>()
  const worker = await Worker.create({
    connection,
    taskQueue: TASK_QUEUE,
    workflowBundle: await bundle(),
    activities: {
      answer: async (id: string) => {
        firstAt.set(id, performance.now())
      },
    },
    stickyQueueScheduleToStartTimeout: '1 second',
    workflowTaskPollerBehavior: POLLERS,
    activityTaskPollerBehavior: POLLERS,
    maxConcurrentWorkflowTaskExecutions: 400,
    maxConcurrentActivityTaskExecutions: 200,
    maxConcurrentLocalActivityExecutions: 200,
  })
  const working = worker.run()
  const client = new Client({ connection })
  let number = 0
  const runOne = async (workflow: FloorJob['workflow']): Promise<Turn> => {
    const id = `floor-${process.pid}-${number++}`
    const startedAt = performance.now()
    await client.workflow.execute(workflow, {
      workflowId: id,
      taskQueue: TASK_QUEUE,
      args: [id],
      requestEagerStart: true,
    })
    const firstMs = (firstAt.get(id) ?? Number.NaN) - startedAt
    firstAt.delete(id)
    return { firstMs, wholeMs: performance.now() - startedAt }
  }
  serveParent(
    'ready',
    (question) => {
      // The parent is the bench.
      const { workflow, count, inFlight } = question as FloorJob
      return runLanes(count, inFlight, () => runOne(workflow))
    },
    async () => {
      worker.shutdown()
      await working
    },
  )
}

/** Bundles as the service does: optimized, and without a stack trace for each promise. */
async function bundle(): Promise<{ code: string }> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./floor-workflow.ts', import.meta.url)),
    webpackConfigHook: (config) => ({ ...config, mode: 'production' }),
    logger: silent,
  })
  return { code: `Error.stackTraceLimit=0;${code}` }
}

await main(process.argv[2] ?? '127.0.0.1:9303')
