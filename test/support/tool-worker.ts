import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { CancelledFailure, Context, heartbeat, sleep } from '@temporalio/activity'
import { ApplicationFailure } from '@temporalio/common'
import { NativeConnection, Worker } from '@temporalio/worker'
import { createCodec } from '../../examples/temporal-worker-typescript/codec.ts'
import { closeRuntime, openRuntime } from './native-runtime.ts'
import type { TemporalPlace } from './temporal.ts'

const fileOf = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** What the activities of a worker were given and met, oldest first. */
export type ToolRun = { tool: string; args: unknown; ended?: 'done' | 'cancelled' }

export const newQueueKey = (): string => randomBytes(32).toString('base64')

/** Activities that misbehave in every way that the service has to handle. */
const createActivities = (runs: ToolRun[]) => {
  const noted =
    <A>(tool: string, work: (args: A) => unknown) =>
    async (args: A): Promise<unknown> => {
      const run: ToolRun = { tool, args }
      runs.push(run)
      try {
        return await work(args)
      } catch (error) {
        if (error instanceof CancelledFailure && tool === 'hang') run.ended = 'cancelled'
        throw error
      } finally {
        run.ended ??= 'done'
      }
    }
  return {
    echo: noted('echo', (args) => args),
    nothing: noted('nothing', () => undefined),
    bytes: noted('bytes', () => new Uint8Array([1, 2])),
    large: noted('large', ({ mib }: { mib: number }) => 'x'.repeat(mib * 1024 * 1024)),
    fail: noted('fail', ({ message }: { message: string }) => {
      throw new Error(message)
    }),
    throw_text: noted('throw_text', () => {
      throw 'only a text'
    }),
    throw_huge: noted('throw_huge', ({ characters }: { characters: number }) => {
      throw new Error('n'.repeat(characters))
    }),
    throw_custom: noted('throw_custom', ({ message }: { message: string }) => {
      throw ApplicationFailure.nonRetryable(message, 'OutOfStock', { secret: message })
    }),
    throw_cancelled: noted('throw_cancelled', () => {
      throw new CancelledFailure('nobody asked')
    }),
    flaky: noted('flaky', () => {
      if (Context.current().info.attempt < 3) throw new Error('not yet')
      return Context.current().info.attempt
    }),
    report: noted('report', async ({ details }: { details: unknown[] }) => {
      for (const one of details) {
        heartbeat(one)
        await sleep(1000)
      }
      return 'reported'
    }),
    hang: noted('hang', async () => {
      for (;;) {
        heartbeat('hangs')
        await sleep(200)
      }
    }),
    silent: noted('silent', () => new Promise((resolve) => setTimeout(resolve, 5000))),
  }
}

export type ToolWorker = { runs: ToolRun[]; stop(): Promise<void> }

/** Runs a worker of an organization in this process. Without a key it encrypts nothing. */
export async function startToolWorker(
  { config }: TemporalPlace,
  taskQueue: string,
  key: string | undefined,
  { workflows = false } = {},
): Promise<ToolWorker> {
  await openRuntime()
  const runs: ToolRun[] = []
  const connection = await NativeConnection.connect({
    address: config?.TEMPORAL_ADDRESS ?? process.env.TEMPORAL_ADDRESS ?? '',
  })
  const worker = await Worker.create({
    connection,
    namespace: config?.TEMPORAL_NAMESPACE ?? 'default',
    taskQueue,
    activities: createActivities(runs),
    maxHeartbeatThrottleInterval: '100 milliseconds',
    shutdownGraceTime: '100 milliseconds',
    ...(workflows ? { workflowsPath: fileOf('./tool-workflows.ts') } : {}),
    ...(key === undefined
      ? {}
      : {
          dataConverter: {
            payloadCodecs: [createCodec(taskQueue, Buffer.from(key, 'base64'))],
            failureConverterPath: fileOf('../../examples/temporal-worker-typescript/failure-converter.ts'),
          },
        }),
  })
  const running = worker.run()
  return {
    runs,
    stop: async () => {
      if (worker.getState() === 'RUNNING') worker.shutdown()
      await running
      await connection.close()
      await closeRuntime()
    },
  }
}
