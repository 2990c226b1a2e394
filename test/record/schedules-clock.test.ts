import { Client, Connection, ScheduleNotFoundError, ScheduleOverlapPolicy } from '@temporalio/client'
import type { Deps } from '../../domain/deps.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid, toId } from '../../domain/kit/ids.ts'
import type { Clock } from '../../domain/schedules/clock/clock.ts'
import { readNextTimes } from '../../domain/schedules/clock/next-times.ts'
import { findLateSchedules, syncClock, syncSchedules } from '../../domain/schedules/clock/sync.ts'
import { parseCron } from '../../domain/schedules/cron/parse.ts'
import type { Schedule } from '../../prisma/generated/client.ts'
import { waitFor } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

const HOUR_MS = 3_600_000

let service: TestService
let deps: Deps
let connection: Connection
let client: Client
const created: string[] = []
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
  connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '' })
  client = new Client({ connection })
})
afterAll(async () => {
  await Promise.all(created.map(deps.clock.remove))
  await connection.close()
  await service.stop()
})

/** Records a schedule, as a process does that is killed before it tells Temporal. */
async function record(more: Partial<Schedule> = {}): Promise<string> {
  const id = newUuid()
  created.push(id)
  const { retryPolicy: _, targetInput: __, ...given } = more
  await deps.db.schedule.create({
    data: {
      id,
      organizationId: DEFAULT_ORGANIZATION_UUID,
      name: id,
      cronExpression: '0 * * * *',
      timezone: 'UTC',
      catchUpMissed: false,
      targetType: 'activity',
      targetName: 'noop',
      targetInput: {},
      ...given,
    },
  })
  return id
}

/** Changes a schedule, and makes that it is due. */
const change = (
  id: string,
  data: Partial<Pick<Schedule, 'cronExpression' | 'enabled' | 'deletedAt' | 'disabledReason'>>,
) =>
  deps.db.schedule.update({
    where: { id },
    data: { ...data, revision: { increment: 1 }, clockDueAt: new Date(), nextTimes: [], nextTimesSince: null },
  })

const read = (id: string) => deps.db.schedule.findUniqueOrThrow({ where: { id } })
const describeInTemporal = (id: string) => client.schedule.getHandle(`schedule-${id}`).describe()
const isInTemporal = (id: string) =>
  describeInTemporal(id).then(
    () => true,
    (error) => {
      if (error instanceof ScheduleNotFoundError) return false
      throw error
    },
  )
const withClock = (clock: Partial<Clock>): Deps => ({ ...deps, clock: { ...deps.clock, ...clock } })
const away = () => Promise.reject(new Error('Temporal is away'))

/** Fields of a schedule that runs once. */
const oneOffAt = (time: Date) => {
  const [second, minute, hour, day] = [
    time.getUTCSeconds(),
    time.getUTCMinutes(),
    time.getUTCHours(),
    time.getUTCDate(),
  ]
  const date = `${day} ${time.getUTCMonth() + 1} * ${time.getUTCFullYear()}`
  return { cronExpression: `${second} ${minute} ${hour} ${date}`, isOneOff: true, catchUpMissed: true }
}

const nextHour = () => new Date(Math.floor(Date.now() / HOUR_MS + 1) * HOUR_MS)

/** Settings that Temporal may have from another process. */
const settings = (scheduleId: string, revision: number, expression = '0 * * * *') => ({
  scheduleId,
  organizationId: DEFAULT_ORGANIZATION_UUID,
  sessionId: null,
  revision,
  fields: parseCron(expression),
  timezone: 'Europe/Berlin',
  pausedBecause: null,
})

describe('telling Temporal of a schedule', () => {
  it('creates it there, paused or not, with ids only, and stores its next times', async () => {
    const sessionId = newUuid()
    const [id, paused] = [
      await record({ sessionId, description: 'secret words' }),
      await record({ enabled: false, disabledReason: 'By a test.' }),
    ]
    await Promise.all([syncClock(deps, id), syncClock(deps, paused)])
    const { action, policies, state, spec } = await describeInTemporal(id)
    expect(action).toMatchObject({
      workflowType: 'launch',
      workflowId: `launch-${id}`,
      taskQueue: service.config.TEMPORAL_TASK_QUEUE,
      args: [{ organizationId: toId('org', DEFAULT_ORGANIZATION_UUID), scheduleId: id, revision: 1 }],
      workflowTaskTimeout: 4000,
      staticSummary: `launches schedule ${id}`,
    })
    expect(policies).toMatchObject({ overlap: ScheduleOverlapPolicy.BUFFER_ONE, catchupWindow: 365 * 24 * HOUR_MS })
    expect([state.paused, state.note, spec.timezone]).toEqual([false, '', 'UTC'])
    expect((await describeInTemporal(paused)).state).toMatchObject({ paused: true, note: 'By a test.' })
    const row = await read(id)
    expect(row).toMatchObject({ clockDueAt: null, clockLeasedUntil: null })
    expect(row.nextTimes).toHaveLength(10)
    expect(row.nextTimes.find((time) => time > new Date())).toEqual(nextHour())
    expect(Number(row.nextTimesSince)).toBeLessThan(Date.now())
    expect(await read(paused)).toMatchObject({ clockDueAt: null, nextTimes: [], nextTimesSince: null })
  })

  it('makes it start launches, which are found by the ids of the schedule, its session and its organization', async () => {
    const sessionId = newUuid()
    const id = await record({ sessionId })
    await syncClock(deps, id)
    await client.schedule.getHandle(`schedule-${id}`).trigger()
    const [started] = await waitFor(async () => {
      const { recentActions } = (await describeInTemporal(id)).info
      return recentActions.length > 0 && recentActions
    }, 'a launch')
    const workflowId = started?.action.workflow.workflowId ?? ''
    expect(workflowId).toMatch(new RegExp(`^launch-${id}-[0-9]{4}-[0-9T:-]+Z$`))
    const { type, taskQueue, searchAttributes } = await client.workflow.getHandle(workflowId).describe()
    expect([type, taskQueue]).toEqual(['launch', service.config.TEMPORAL_TASK_QUEUE])
    expect(searchAttributes).toMatchObject({
      ScheduleId: [id],
      SessionId: [toId('session', sessionId)],
      OrganizationId: [toId('org', DEFAULT_ORGANIZATION_UUID)],
    })
  })

  it('is repeated by the sweep when Temporal was away, and when the process was killed', async () => {
    const [id, killed] = [await record(), await record()]
    await syncClock(withClock({ keep: away }), id)
    expect(await read(id)).toMatchObject({ clockLeasedUntil: null, nextTimes: [] })
    expect([await isInTemporal(id), await isInTemporal(killed)]).toEqual([false, false])
    await syncSchedules(deps)
    expect(await isInTemporal(id)).toBe(false)
    await deps.db.schedule.updateMany({
      where: { id: { in: [id, killed] } },
      data: { clockDueAt: new Date(Date.now() - 3000) },
    })
    await syncSchedules(deps)
    expect([await isInTemporal(id), await isInTemporal(killed)]).toEqual([true, true])
    expect([(await read(id)).clockDueAt, (await read(killed)).clockDueAt]).toEqual([null, null])
  })

  it('launches what came due before it was told, a one-off too', async () => {
    const [repeated, once] = [
      await record({ cronExpression: '*/10 * * * * *', launchedUntil: new Date(Date.now() - 15_000) }),
      await record({ ...oneOffAt(new Date(Date.now() - 15_000)), launchedUntil: new Date(Date.now() - 60_000) }),
    ]
    await Promise.all([syncClock(deps, repeated), syncClock(deps, once)])
    for (const id of [repeated, once]) {
      const executions = await deps.db.scheduleExecution.findMany({ where: { scheduleId: id, status: 'pending' } })
      expect(executions).toHaveLength(1)
    }
    expect(await read(repeated)).toMatchObject({ enabled: true, clockDueAt: null })
    expect(await read(once)).toMatchObject({ enabled: false })
  })

  it('tells Temporal of a record that was restored to an earlier revision', async () => {
    const id = await record()
    await syncClock(deps, id)
    await deps.clock.keep({ ...settings(id, 7, '5 * * * *'), pausedBecause: 'a change that was lost' })
    await deps.db.schedule.update({ where: { id }, data: { clockDueAt: new Date() } })
    await syncClock(deps, id)
    expect(await read(id)).toMatchObject({ revision: 8, clockDueAt: null })
    expect(await describeInTemporal(id)).toMatchObject({
      action: { args: [{ revision: 8 }] },
      state: { paused: false },
    })
  })

  it('is done by one of two processes, for which the other one waits', async () => {
    const id = await record()
    let kept = 0
    const slow = withClock({
      keep: async (settings) => {
        kept++
        await deps.clock.keep(settings)
      },
    })
    await Promise.all(
      Array.from({ length: 4 }, () =>
        syncClock(slow, id).then(async () => expect((await read(id)).nextTimes).toHaveLength(10)),
      ),
    )
    expect(kept).toBe(1)
  })

  it('goes on with a change that came meanwhile', async () => {
    const id = await record()
    let changes = 0
    const disturbed = withClock({
      nextTimes: async (scheduleId) => {
        if (changes++ === 0) await change(id, { cronExpression: '30 * * * *' })
        return deps.clock.nextTimes(scheduleId)
      },
    })
    await syncClock(disturbed, id)
    const row = await read(id)
    expect(row).toMatchObject({ revision: 2, clockDueAt: null, clockLeasedUntil: null })
    expect(row.nextTimes.every((time) => time.getUTCMinutes() === 30)).toBe(true)
    expect((await describeInTemporal(id)).action.args).toMatchObject([{ revision: 2 }])
  })

  it('takes over from a process that died, once its lease is over', async () => {
    const id = await record({ clockLeasedUntil: new Date(Date.now() + 500) })
    await syncClock(deps, id)
    expect(await isInTemporal(id)).toBe(true)
  })

  it('pauses, goes on and deletes', async () => {
    const id = await record()
    await syncClock(deps, id)
    await change(id, { enabled: false })
    await syncClock(deps, id)
    expect((await describeInTemporal(id)).state).toMatchObject({ paused: true, note: 'Disabled.' })
    expect((await read(id)).nextTimes).toEqual([])
    await change(id, { enabled: true })
    await syncClock(deps, id)
    expect((await describeInTemporal(id)).state.paused).toBe(false)
    await change(id, { deletedAt: new Date(), enabled: false })
    await syncClock(deps, id)
    expect(await isInTemporal(id)).toBe(false)
    await change(id, { deletedAt: new Date(), enabled: false })
    await syncClock(deps, id)
    expect((await read(id)).clockDueAt).toBeNull()
  })
})

describe('the clock', () => {
  it('does not go back to an earlier revision, and is not told twice', async () => {
    const id = newUuid()
    created.push(id)
    await deps.clock.keep(settings(id, 2, '15 * * * *'))
    await deps.clock.keep(settings(id, 1, '30 * * * *'))
    await deps.clock.keep(settings(id, 2, '15 * * * *'))
    const { action, info, spec } = await describeInTemporal(id)
    expect([action.args, info.lastUpdatedAt]).toEqual([[expect.objectContaining({ revision: 2 })], undefined])
    expect(spec.calendars?.[0]?.minute).toEqual([{ start: 15, end: 15, step: 1 }])
  })

  it('has the latest of several that are told at once', async () => {
    const id = newUuid()
    created.push(id)
    const results = await Promise.allSettled(
      [3, 1, 4, 2, 5].map((revision) => deps.clock.keep(settings(id, revision, `${revision} * * * *`))),
    )
    if (results[4]?.status === 'rejected') await deps.clock.keep(settings(id, 5, '5 * * * *'))
    expect((await describeInTemporal(id)).action.args).toMatchObject([{ revision: 5 }])
  })

  it('says nothing of a schedule that does not exist', async () => {
    expect(await deps.clock.nextTimes(newUuid())).toBeUndefined()
    await expect(deps.clock.timesBetween(newUuid(), new Date(0), new Date(), 10)).rejects.toThrow()
    await deps.clock.remove(newUuid())
  })

  it('returns the latest of many times', async () => {
    const id = newUuid()
    created.push(id)
    await deps.clock.keep(settings(id, 1, '*/10 * * * * *'))
    const until = new Date(Date.UTC(2027, 5, 2))
    const after = new Date(Date.UTC(2027, 5, 1) - 1)
    const all = await deps.clock.timesBetween(id, after, until, 10_000)
    expect(all).toHaveLength(8641)
    expect(all.every((time, index) => time.getTime() === after.getTime() + 1 + index * 10_000)).toBe(true)
    expect(await deps.clock.timesBetween(id, after, until, 3)).toEqual(all.slice(-3))
    expect(await deps.clock.timesBetween(id, until, until, 3)).toEqual([])
  })
})

describe('schedules that are late', () => {
  it('are told to Temporal again after someone deleted them there', async () => {
    const id = await record()
    await syncClock(deps, id)
    await client.schedule.getHandle(`schedule-${id}`).delete()
    const passed = new Date(Date.now() - 61_000)
    // All of its known times have passed and were launched: nothing else tells that Temporal lost it.
    await deps.db.schedule.update({ where: { id }, data: { nextTimes: [passed] } })
    const seen = new Map<string, number>()
    await findLateSchedules(deps, seen)
    expect((await read(id)).clockDueAt).not.toBeNull()
    await syncClock(deps, id)
    expect(await isInTemporal(id)).toBe(true)
    expect((await read(id)).nextTimes).toHaveLength(10)
    await deps.db.schedule.update({ where: { id }, data: { nextTimes: [passed] } })
    await findLateSchedules(deps, seen)
    expect((await read(id)).clockDueAt).toBeNull()
  })

  it('are not those whose runs were launched, or that are disabled', async () => {
    const [passed, next] = [new Date(Date.now() - 61_000), nextHour()]
    const known = { clockDueAt: null, nextTimes: [passed, next] }
    const late = await record({ ...known, launchedUntil: new Date(Date.now() - 120_000) })
    const launched = await record({ ...known, launchedUntil: new Date() })
    const disabled = await record({ ...known, launchedUntil: new Date(0), enabled: false })
    const seen = new Map<string, number>()
    await findLateSchedules(deps, seen)
    expect([late, launched, disabled].map((id) => seen.has(id))).toEqual([true, false, false])
    await deps.db.schedule.updateMany({ where: { id: late }, data: { clockDueAt: null } })
  })
})

describe('the next time of schedules', () => {
  it('is asked of Temporal when the known times have passed, and stored', async () => {
    const id = await record()
    await syncClock(deps, id)
    await deps.db.schedule.update({ where: { id }, data: { nextTimes: [new Date(0)] } })
    const disabled = await record({ enabled: false })
    const next = await readNextTimes(deps, [await read(id), await read(disabled)])
    const { nextTimes } = await read(id)
    expect([next.get(id), next.get(disabled)]).toEqual([nextTimes, []])
    expect([nextTimes[0], nextTimes.length]).toEqual([nextHour(), 10])
  })

  it('is unknown within 2 s when Temporal does not answer', async () => {
    const rows = await Promise.all(
      Array.from({ length: 10 }, async () => read(await record({ clockDueAt: null, nextTimes: [new Date(0)] }))),
    )
    const startedAt = Date.now()
    let asked = 0
    const silent = withClock({
      nextTimes: () => {
        asked++
        return new Promise(() => {})
      },
    })
    const next = await readNextTimes(silent, rows)
    expect([...next.values()]).toEqual(Array(10).fill([]))
    expect(asked).toBe(8)
    expect(Date.now() - startedAt).toBeLessThan(4000)
    expect((await readNextTimes(withClock({ nextTimes: away }), rows)).size).toBe(10)
  })

  it('makes the schedule due when Temporal has none', async () => {
    const row = await read(await record({ clockDueAt: null, nextTimes: [new Date(0)] }))
    expect(await readNextTimes(deps, [row])).toEqual(new Map([[row.id, []]]))
    expect((await read(row.id)).clockDueAt).not.toBeNull()
  })
})
