import { randomUUID } from 'node:crypto'
import { Client, Connection, type ScheduleDescription, ScheduleOverlapPolicy } from '@temporalio/client'
import { pino } from 'pino'
import { connectTemporal, type Temporal } from '../../../platform/temporal/temporal.ts'
import { waitFor } from '../../support/http.ts'
import { startProxy } from '../../support/proxy.ts'

const address = process.env.TEMPORAL_ADDRESS ?? ''

let connection: Connection
let client: Client
let taskQueue: string
let temporals: Temporal[]
beforeAll(async () => {
  connection = await Connection.connect({ address })
  client = new Client({ connection })
})
afterAll(() => connection.close())
beforeEach(() => {
  taskQueue = `unpolled-${randomUUID()}`
  temporals = []
})
afterEach(async () => {
  for (const temporal of temporals) await temporal.close()
  await handle()
    .delete()
    .catch(() => {})
})

/** Connects to Temporal as a process of the service does. */
function open(at = address): Temporal {
  const config = { TEMPORAL_ADDRESS: at, TEMPORAL_NAMESPACE: 'default', TEMPORAL_TASK_QUEUE: taskQueue }
  const temporal = connectTemporal(config, pino({ level: 'silent' }))
  temporals.push(temporal)
  return temporal
}

const handle = () => client.schedule.getHandle(`${taskQueue}-retention`)

/** Waits for a schedule with this interval in seconds. */
const scheduled = (everySecs: number): Promise<ScheduleDescription> =>
  waitFor(async () => {
    const found = await handle()
      .describe()
      .catch(() => undefined)
    return found?.spec.intervals?.[0]?.every === everySecs * 1000 && found
  }, `the schedule each ${everySecs} s`)

describe('scheduling retention', () => {
  it('creates one schedule, however many processes do so at once', async () => {
    for (const temporal of Array.from({ length: 5 }, () => open())) temporal.scheduleRetention({ deltasMs: 3_600_000 })
    const { action, policies, spec, state } = await scheduled(300)
    expect(action).toMatchObject({ workflowType: 'retention', workflowId: `${taskQueue}-retention`, taskQueue })
    expect(action.args ?? []).toEqual([])
    expect(policies).toMatchObject({ overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: 10_000 })
    expect(spec.intervals).toHaveLength(1)
    expect(state.paused).toBe(false)
  })

  it.each([
    [1, 1],
    [1500, 2],
    [60_000, 60],
  ])('runs for a period of %i ms each %i s', async (deltasMs, everySecs) => {
    open().scheduleRetention({ deltasMs })
    await scheduled(everySecs)
  })

  it('updates the schedule for a changed period, and leaves a correct one alone', async () => {
    open().scheduleRetention({ deltasMs: 60_000 })
    const { info } = await scheduled(60)
    expect(info.lastUpdatedAt).toBeUndefined()
    await handle().pause('by an operator')
    const again = open()
    again.scheduleRetention({ deltasMs: 60_000 })
    await again.close()
    const { info: same } = await scheduled(60)
    open().scheduleRetention({ deltasMs: 120_000 })
    const changed = await scheduled(120)
    expect(changed.info.lastUpdatedAt).not.toEqual(same.lastUpdatedAt)
    expect(changed.state).toMatchObject({ paused: true, note: 'by an operator' })
    expect(changed.action).toMatchObject({ workflowType: 'retention', taskQueue })
  })

  it('creates the schedule again when Temporal has lost it', async () => {
    open().scheduleRetention({ deltasMs: 1000 })
    await scheduled(1)
    await handle().delete()
    await scheduled(1)
  })

  it('waits for Temporal while it is away', async () => {
    const proxy = await startProxy(address)
    proxy.cut()
    open(proxy.address).scheduleRetention({ deltasMs: 60_000 })
    await expect(handle().describe()).rejects.toThrow()
    proxy.mend()
    await scheduled(60)
    for (const temporal of temporals.splice(0)) await temporal.close()
    await proxy.close()
  })

  it('does not keep a process from ending while Temporal is away', async () => {
    const temporal = open('127.0.0.1:1')
    temporal.scheduleRetention({ deltasMs: 60_000 })
    temporals = []
    await expect(temporal.close()).resolves.toBeUndefined()
  })
})
