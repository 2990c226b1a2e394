import { fileURLToPath } from 'node:url'
import { Client, ScheduleOverlapPolicy } from '@temporalio/client'
import { NativeConnection, Runtime, Worker } from '@temporalio/worker'
import { serveParent } from './child.ts'
import {
  forEachSchedule,
  type Measured,
  measure,
  nextWindow,
  type Run,
  requireInTime,
  type Spread,
  secondOf,
  waitForRuns,
} from './schedule-window.ts'
import { percentile } from './statistics.ts'

const TASK_QUEUE = 'bench-schedules-floor'

export type FloorMeasured = Measured & { createMs: number }

/**
 * Creates bare Temporal schedules that start a trivial workflow, all due in one window, and measures when it starts.
 * Reads a Spread from its parent and answers with FloorMeasured, or why it failed. Deletes the schedules before it
 * answers.
 */
async function main(address: string): Promise<void> {
  Runtime.install({
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    shutdownSignals: [],
  })
  const connection = await NativeConnection.connect({ address })
  const worker = await Worker.create({
    connection,
    taskQueue: TASK_QUEUE,
    workflowsPath: fileURLToPath(new URL('./floor-workflow.ts', import.meta.url)),
  })
  const working = worker.run()
  const client = new Client({ connection })
  serveParent(
    'ready',
    (spread) => measureSpread(client, spread as Spread).catch(({ message }: Error) => ({ failed: message })),
    async () => {
      worker.shutdown()
      await working
    },
  )
}

async function measureSpread(client: Client, spread: Spread): Promise<FloorMeasured> {
  const window = nextWindow()
  const prefix = `floor-${spread.replace(' ', '-')}`
  const idOf = (number: number) => `${prefix}-${number}`
  try {
    const times = await forEachSchedule((number) =>
      client.schedule.create({
        scheduleId: idOf(number),
        spec: {
          calendars: [
            {
              second: secondOf(number, spread),
              minute: window.minutes,
              hour: window.hour,
            },
          ],
        },
        policies: { overlap: ScheduleOverlapPolicy.BUFFER_ONE },
        action: { type: 'startWorkflow', workflowType: 'tick', workflowId: idOf(number), taskQueue: TASK_QUEUE },
      }),
    )
    requireInTime(window)
    const query = `TaskQueue = '${TASK_QUEUE}' AND StartTime >= '${new Date(window.startsAt).toISOString()}'`
    await waitForRuns(window, async () => (await client.workflow.count(query)).count)
    return { ...measure(await readRuns(client, query)), createMs: percentile(times, 0.5) }
  } finally {
    await forEachSchedule((number) =>
      client.schedule
        .getHandle(idOf(number))
        .delete()
        .catch(() => {}),
    )
  }
}

/** Reads the workflows. Temporal appends the due time to their ids. */
async function readRuns(client: Client, query: string): Promise<Map<string, Run[]>> {
  const runs = new Map<string, Run[]>()
  for await (const { workflowId, startTime } of client.workflow.list({ query })) {
    const run = { dueAt: Date.parse(workflowId.slice(-'2026-01-01T00:00:00Z'.length)), startedAt: startTime.getTime() }
    runs.set(workflowId, [...(runs.get(workflowId) ?? []), run])
  }
  return runs
}

await main(process.argv[2] ?? '127.0.0.1:9303')
