import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Client, Connection } from '@temporalio/client'
import { pino } from 'pino'
import { freePorts, startTemporal } from '../../../dev/services/index.ts'
import type { TemporalHealth } from '../../../domain/upkeep/health/health.ts'
import { connectTemporal, type Temporal } from '../../../platform/temporal/temporal.ts'
import { EXECUTION_WORKFLOW, TURN_WORKFLOW } from '../../../workflows/messages.ts'
import { PATIENCE_MS, waitFor } from '../../support/http.ts'

const HOUR_MS = 3_600_000
const UNKNOWN: TemporalHealth = { workers: null, backlog: null, turns: null, executions: null }
const NONE = { running: 0, failed: 0, ended: 0 }

let connection: Connection
let client: Client
beforeAll(async () => {
  connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '' })
  client = new Client({ connection })
})
afterAll(() => connection.close())

const opened: Temporal[] = []
afterEach(async () => {
  for (const temporal of opened.splice(0)) await temporal.close()
})

/** Connects to Temporal as a process of the service does, on its own task queue. */
function open({ address = connection.options.address, taskQueue = `queue-${randomUUID()}` } = {}) {
  const config = { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: 'default', TEMPORAL_TASK_QUEUE: taskQueue }
  const temporal = connectTemporal(config, pino({ level: 'silent' }))
  opened.push(temporal)
  return { taskQueue, read: temporal.readHealth }
}

/** Starts a workflow that no worker runs. */
const start = (taskQueue: string, type: string, more: { workflowExecutionTimeout?: number } = {}) =>
  client.workflow.start(type, { taskQueue, workflowId: randomUUID(), ...more })

/** Reads until the expected values appear. After a while, compares them so that the test fails with the difference. */
async function expectSoon(read: () => Promise<TemporalHealth>, expected: Partial<TemporalHealth>): Promise<void> {
  const until = Date.now() + PATIENCE_MS / 2
  const fits = async () => {
    const health = await read()
    if (Date.now() > until) expect(health).toMatchObject(expected)
    return Object.entries(expected).every(
      ([key, value]) => JSON.stringify(health[key as keyof TemporalHealth]) === JSON.stringify(value),
    )
  }
  await waitFor(fits, 'Temporal to say so')
}

/** Polls as idle workers do while `work` runs. */
async function whilePolled<T>(on: Connection, taskQueue: string, identities: string[], work: () => Promise<T>) {
  const done = new AbortController()
  const ask = (asking: () => Promise<unknown>) =>
    on.withAbortSignal(done.signal, () => on.withDeadline(Date.now() + PATIENCE_MS, asking))
  const polls = identities.flatMap((identity) => {
    const request = { namespace: 'default', taskQueue: { name: taskQueue, kind: 1 }, identity }
    return [
      ask(() => on.workflowService.pollWorkflowTaskQueue(request)),
      ask(() => on.workflowService.pollActivityTaskQueue(request)),
    ]
  })
  const ended = Promise.allSettled(polls)
  try {
    return await work()
  } finally {
    done.abort()
    await ended
  }
}

/** Reads with the local clock set forward. Temporal's own clock is unchanged. */
async function readLater(read: () => Promise<TemporalHealth>, laterMs: number): Promise<TemporalHealth> {
  const { now } = Date
  Date.now = () => now() + laterMs
  try {
    return await read()
  } finally {
    Date.now = now
  }
}

describe('the workflows that Temporal counts', () => {
  it('are turns that run, failed and ended, each by how it ended', async () => {
    const { taskQueue, read } = open()
    const [, terminated, cancelled] = await Promise.all([
      start(taskQueue, TURN_WORKFLOW),
      start(taskQueue, TURN_WORKFLOW),
      start(taskQueue, TURN_WORKFLOW),
      start(taskQueue, TURN_WORKFLOW, { workflowExecutionTimeout: 1000 }),
    ])
    await terminated.terminate()
    // Only a worker can answer a cancellation. Without one the workflow stays running.
    await cancelled.cancel()
    await expectSoon(read, { turns: { running: 2, failed: 2, ended: 2 }, executions: NONE })
  })

  it('are of its own queue and kind only', async () => {
    const { taskQueue, read } = open({ taskQueue: `it's ${randomUUID()}` })
    await Promise.all([
      start(`${taskQueue}x`, TURN_WORKFLOW),
      start(taskQueue, 'other'),
      start(taskQueue, TURN_WORKFLOW),
    ])
    await expectSoon(read, { turns: { running: 1, failed: 0, ended: 0 }, executions: NONE })
  })

  it('are executions by their type, and not what a Temporal Schedule of the service has started', async () => {
    const { taskQueue, read } = open()
    const schedule = await client.schedule.create({
      scheduleId: randomUUID(),
      spec: {},
      action: { type: 'startWorkflow', workflowType: 'launch', workflowId: `launch-${randomUUID()}`, taskQueue },
    })
    await schedule.trigger()
    const [running, terminated] = await Promise.all([
      start(taskQueue, EXECUTION_WORKFLOW),
      start(taskQueue, EXECUTION_WORKFLOW),
    ])
    await terminated.terminate()
    await waitFor(async () => (await schedule.describe()).info.recentActions.length === 1, 'the launch')
    await expectSoon(read, { turns: NONE, executions: { running: 1, failed: 1, ended: 1 } })
    await running.terminate()
    await schedule.delete()
  })

  it('have ended within the last hour', async () => {
    const { taskQueue, read } = open()
    await start(taskQueue, TURN_WORKFLOW)
    await (await start(taskQueue, TURN_WORKFLOW)).terminate()
    await expectSoon(read, { turns: { running: 1, failed: 1, ended: 1 } })
    expect(await readLater(read, HOUR_MS)).toMatchObject({ turns: { running: 1, failed: 0, ended: 0 } })
  })
})

describe('the task queue', () => {
  it('has a backlog while nobody polls, and its age', async () => {
    const { taskQueue, read } = open()
    expect(await read()).toEqual({ workers: 0, backlog: { tasks: 0, oldestMs: 0 }, turns: NONE, executions: NONE })
    await Promise.all([1, 2, 3].map(() => start(taskQueue, TURN_WORKFLOW)))
    const waits = async () => {
      const { backlog } = await read()
      return backlog?.tasks === 3 && backlog.oldestMs > 0 && backlog
    }
    const first = await waitFor(waits, 'the backlog')
    const later = await waitFor(async () => {
      const now = await waits()
      return now && now.oldestMs > first.oldestMs && now
    }, 'the backlog to age')
    expect(later.oldestMs).toBeLessThan(HOUR_MS)
  })

  it('has the workers that poll or did so recently', async () => {
    const { taskQueue, read } = open()
    await whilePolled(connection, taskQueue, ['a', 'a', 'b'], () => expectSoon(read, { workers: 2 }))
    expect(await readLater(read, 10_000)).toMatchObject({ workers: 2 })
    expect(await readLater(read, 200_000)).toMatchObject({ workers: 0 })
  })
})

describe('a server with partitions, as they are by default', () => {
  it('reports the workers and tasks of all partitions', async () => {
    const dataDir = mkdtempSync(path.join(tmpdir(), 'agent-sessions-partitions-'))
    const [port = 0, uiPort = 0] = await freePorts(2)
    const dynamicConfig = ['matching.numTaskqueueReadPartitions=4', 'matching.numTaskqueueWritePartitions=4']
    const server = await startTemporal({ dataDir, port, uiPort, dynamicConfig, log: () => {} })
    const worker = await Connection.connect({ address: server.url })
    try {
      const { taskQueue, read } = open({ address: server.url })
      const own = new Client({ connection: worker })
      const turns = Array.from({ length: 12 }, () => ({ taskQueue, workflowId: randomUUID() }))
      for (const turn of turns) await own.workflow.start(TURN_WORKFLOW, turn)
      await waitFor(async () => (await read()).backlog?.tasks === 12, 'the backlog')
      const idle = open({ address: server.url })
      const identities = Array.from({ length: 12 }, (_, index) => `worker-${index}`)
      await whilePolled(worker, idle.taskQueue, identities, () =>
        waitFor(async () => (await idle.read()).workers === 12, 'all workers'),
      )
    } finally {
      await worker.close()
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    }
  })
})

describe('Temporal away', () => {
  it('is reported as unknown within the time limit of a call', async () => {
    const { read } = open({ address: '127.0.0.1:1' })
    expect(await read()).toEqual(UNKNOWN)
  })

  it('is waited for when closing', async () => {
    const { read } = open({ address: '127.0.0.1:1' })
    const reading = read()
    await Promise.all(opened.splice(0).map((temporal) => temporal.close()))
    expect(await Promise.race([reading, 'pending'])).toEqual(UNKNOWN)
  })
})
