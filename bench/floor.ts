import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { type InjectedSinks, NativeConnection, Runtime, Worker } from '@temporalio/worker'
import type { DoneSinks } from './floor-workflow.ts'
import { type Result, runLanes, type Turn } from './statistics.ts'

type Running = { startedAt: number; firstMs: number; finish(turn: Turn): void }

/**
 * Runs bare workflows on the Temporal under test, with worker and client in one process and eager start, as the
 * service has them. Reads `[count, inFlight]` jobs from its parent and answers each with a Result.
 */
async function main(address: string): Promise<void> {
  Runtime.install({
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    shutdownSignals: [],
  })
  const connection = await NativeConnection.connect({ address })
  const running = new Map<string, Running>()
  const sinks: InjectedSinks<DoneSinks> = {
    bench: {
      done: {
        fn: (_, id) => {
          const run = running.get(id)
          run?.finish({ firstMs: run.firstMs, wholeMs: performance.now() - run.startedAt })
        },
      },
    },
  }
  const worker = await Worker.create({
    connection,
    taskQueue: 'bench-floor',
    workflowsPath: fileURLToPath(new URL('./floor-workflow.ts', import.meta.url)),
    sinks,
    activities: {
      answer: async (id: string) => {
        const run = running.get(id)
        if (run !== undefined) run.firstMs = performance.now() - run.startedAt
      },
    },
    maxConcurrentActivityTaskExecutions: 200,
  })
  const working = worker.run()
  const client = new Client({ connection })
  let number = 0
  const turn = () =>
    new Promise<Turn>((resolve, reject) => {
      const id = `floor-${process.pid}-${number++}`
      const finish = (measured: Turn) => {
        running.delete(id)
        resolve(measured)
      }
      running.set(id, { startedAt: performance.now(), firstMs: Number.NaN, finish })
      const options = { workflowId: id, taskQueue: 'bench-floor', args: [id], requestEagerStart: true }
      client.workflow.start('floor', options).catch(reject)
    })
  process.on('message', async (job: [count: number, inFlight: number] | 'stop') => {
    if (job === 'stop') {
      worker.shutdown()
      await working
      process.exit(0)
    }
    const result: Result = await runLanes(job[0], job[1], turn)
    process.send?.(result)
  })
  process.send?.('ready')
}

await main(process.argv[2] ?? '127.0.0.1:9303')
