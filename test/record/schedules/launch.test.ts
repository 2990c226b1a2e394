import type { Deps } from '../../../domain/deps.ts'
import { asUuid, newUuid } from '../../../domain/kit/ids.ts'
import { launchDue } from '../../../domain/schedules/clock/launch.ts'
import {
  failLostExecutions,
  notifyEndedTurns,
  startLostExecutions,
} from '../../../domain/schedules/executions/sweep.ts'
import { triggerSchedule } from '../../../domain/schedules/trigger.ts'
import { patchSchedule } from '../../../domain/schedules/update.ts'
import type { Schedule } from '../../../prisma/generated/client.ts'
import { ANYBODY, createOpenTurn, withWorkflows } from '../../support/by-hand.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { addUser } from '../../support/organizations.ts'
import { insertExecution, insertSchedule } from '../../support/schedule-rows.ts'
import { startService, type TestService } from '../../support/service.ts'

const EVERY_MS = 10_000
const HOUR_MS = 60 * 60_000

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})
afterAll(() => service.stop())

/** Dependencies with a clock that is right each ten seconds, and with workflows that are only counted. */
function createDeps(overrides: Partial<Deps> = {}) {
  const startedIds: string[] = []
  const clock = createFakeClock(EVERY_MS)
  const startExecution = async ({ executionId }: { executionId: string }) => {
    startedIds.push(executionId)
    return true
  }
  // The tests share an organization, and their executions never end.
  const quotas = { ...service.platform.deps.quotas, schedules: { maxCount: 1000, maxRunning: 1000 } }
  const deps = { ...withWorkflows(service.platform.deps, { startExecution }), clock, quotas, ...overrides }
  return { deps, clock, startedIds }
}

const placeOf = ({ id: scheduleId, organizationId }: Schedule) => ({ scheduleId, organizationId })
const executionsOf = ({ id: scheduleId }: Schedule, { db }: Deps) =>
  db.scheduleExecution.findMany({ where: { scheduleId }, orderBy: { id: 'asc' } })
const readAgain = ({ id }: Schedule, { db }: Deps) => db.schedule.findUniqueOrThrow({ where: { id } })
const agoMs = (ms: number) => new Date(Date.now() - ms)
const onTheClock = (time: Date) => new Date(Math.floor(time.getTime() / EVERY_MS) * EVERY_MS)

describe('a launch', () => {
  it('records each run once, however many launches there are at once', async () => {
    const { deps, startedIds } = createDeps()
    const schedule = await insertSchedule(deps, { catchUpMissed: true, launchedUntil: agoMs(5 * EVERY_MS) })
    const until = new Date()
    await Promise.all(Array.from({ length: 8 }, () => launchDue(deps, placeOf(schedule), { scheduledAt: until })))
    const executions = await executionsOf(schedule, deps)
    const times = executions.map(({ scheduledAt }) => scheduledAt.getTime())
    expect(times.length).toBeGreaterThanOrEqual(5)
    expect(times).toEqual(times.map((_, index) => (times[0] ?? 0) + index * EVERY_MS))
    expect(startedIds.toSorted()).toEqual(executions.map(({ id }) => id).toSorted())
  })

  it('starts three workflows, not 8,640, after a day away', async () => {
    const { deps, startedIds } = createDeps()
    const schedule = await insertSchedule(deps, {
      catchUpMissed: true,
      maxCatchUp: 3,
      launchedUntil: agoMs(24 * HOUR_MS),
    })
    await launchDue(deps, placeOf(schedule))
    const latest = onTheClock((await readAgain(schedule, deps)).launchedUntil).getTime()
    const times = (await executionsOf(schedule, deps)).map(({ scheduledAt }) => scheduledAt.getTime())
    expect(times).toEqual([latest - 2 * EVERY_MS, latest - EVERY_MS, latest])
    expect(startedIds).toHaveLength(3)
  })

  it('asks Temporal for no time that it has said before', async () => {
    const { deps, clock } = createDeps()
    const launchedUntil = agoMs(EVERY_MS)
    const nextTimes = Array.from(
      { length: 4 },
      (_, index) => new Date(onTheClock(launchedUntil).getTime() + (index + 1) * EVERY_MS),
    )
    const schedule = await insertSchedule(deps, { launchedUntil, nextTimes, nextTimesSince: launchedUntil })
    expect(await launchDue(deps, placeOf(schedule))).toEqual({ executions: [expect.any(String)] })
    expect(clock.asked).toBe(0)
    const after = await readAgain(schedule, deps)
    expect(after.nextTimes).toEqual(nextTimes.filter((time) => time > after.launchedUntil))
  })

  it('runs what Temporal says is due, even when the clock of the database is behind', async () => {
    const { deps } = createDeps()
    const schedule = await insertSchedule(deps)
    const ahead = new Date(onTheClock(new Date()).getTime() + EVERY_MS)
    await launchDue(deps, placeOf(schedule), { scheduledAt: ahead })
    expect((await executionsOf(schedule, deps)).map(({ scheduledAt }) => scheduledAt)).toEqual([ahead])
  })

  it('skips the older of what is more than may run at once, of the schedule and of the owner', async () => {
    const quotas = { ...service.platform.deps.quotas, schedules: { maxCount: 10, maxRunning: 4 } }
    const { deps } = createDeps({ quotas })
    const [ownerId, another] = [await addUser(deps.db), newUuid()]
    const organizationId = newUuid()
    for (const id of [organizationId, another])
      await deps.db.organization.create({ data: { id, name: 'Busy', ownerId } })
    const given = { catchUpMissed: true, maxCatchUp: 3, launchedUntil: agoMs(HOUR_MS) }
    const limited = await insertSchedule(deps, { ...given, organizationId: another, maxConcurrent: 2 })
    const other = await insertSchedule(deps, { ...given, organizationId })
    await launchDue(deps, placeOf(limited))
    await launchDue(deps, placeOf(other))
    const outcomes = async (schedule: Schedule) =>
      (await executionsOf(schedule, deps)).map(({ status, error }) => error ?? status)
    expect(await outcomes(limited)).toEqual([
      'Skipped: max_concurrent allows 2 executions of the schedule at once.',
      'pending',
      'pending',
    ])
    expect(await outcomes(other)).toEqual([
      'Skipped: the organizations of the owner may have 4 executions at once.',
      'pending',
      'pending',
    ])
  })

  it('runs any number at once when max_concurrent is 0', async () => {
    const { deps, startedIds } = createDeps()
    const schedule = await insertSchedule(deps, {
      catchUpMissed: true,
      maxCatchUp: 4,
      maxConcurrent: 0,
      launchedUntil: agoMs(HOUR_MS),
    })
    await launchDue(deps, placeOf(schedule))
    expect(startedIds).toHaveLength(4)
  })

  it('has Temporal told again when it has lost the schedule, or somebody has paused it there', async () => {
    const { deps, clock } = createDeps()
    clock.nextTimes = async () => undefined
    const schedule = await insertSchedule(deps, { launchedUntil: agoMs(2 * EVERY_MS) })
    expect(await launchDue(deps, placeOf(schedule))).toEqual({ executions: [expect.any(String)] })
    expect(await readAgain(schedule, deps)).toMatchObject({ nextTimes: [], clockDueAt: expect.any(Date) })
  })

  it.each([
    ['is disabled', { enabled: false }],
    ['is deleted', { deletedAt: new Date() }],
  ])('of a schedule that %s records nothing, and has Temporal told', async (_title, state) => {
    const { deps } = createDeps()
    const schedule = await insertSchedule(deps, { launchedUntil: agoMs(EVERY_MS), ...state })
    expect(await launchDue(deps, placeOf(schedule))).toEqual({ executions: [] })
    expect(await executionsOf(schedule, deps)).toEqual([])
    expect((await readAgain(schedule, deps)).clockDueAt).not.toBeNull()
  })

  it('is repeated until Temporal knows of a change, and done by the caller that has notified it', async () => {
    const { deps } = createDeps()
    const clockDueAt = new Date()
    const schedule = await insertSchedule(deps, { launchedUntil: agoMs(EVERY_MS), clockDueAt, revision: 2 })
    const launch = (clockRevision?: number) =>
      launchDue(deps, placeOf(schedule), { ...(clockRevision && { clockRevision }) })
    expect([await launch(), await launch(1)]).toEqual(['clock_stale', 'clock_stale'])
    expect(await launch(2)).toEqual({ executions: [expect.any(String)] })
  })

  it('comes before a change, also where Temporal has not been told of the schedule yet', async () => {
    const { deps, clock } = createDeps()
    const dueAt = new Date()
    clock.timesBetween = async (_id, after) => [dueAt].filter((time) => time > after)
    const schedule = await insertSchedule(deps, { clockDueAt: dueAt, launchedUntil: agoMs(EVERY_MS) })
    await patchSchedule(deps, ANYBODY, asUuid(schedule.id), { enabled: false })
    expect(await executionsOf(schedule, deps)).toHaveLength(1)
    expect(await readAgain(schedule, deps)).toMatchObject({ enabled: false, clockDueAt: null, revision: 2 })
  })

  it('of a schedule that does not exist removes its clock', async () => {
    const { deps, clock } = createDeps()
    const scheduleId = newUuid()
    await launchDue(deps, { scheduleId, organizationId: ANYBODY.organizationId })
    expect(clock.removed).toEqual([scheduleId])
  })

  it('of a one-off disables it, and leaves it to the next launch to find nothing', async () => {
    const { deps } = createDeps()
    const schedule = await insertSchedule(deps, { isOneOff: true, launchedUntil: agoMs(EVERY_MS) })
    await launchDue(deps, placeOf(schedule))
    await launchDue(deps, placeOf(schedule))
    expect(await executionsOf(schedule, deps)).toHaveLength(1)
    expect(await readAgain(schedule, deps)).toMatchObject({ enabled: false, disabledReason: 'a one-off that has run' })
  })
})

describe('a trigger', () => {
  it('starts an execution of a disabled schedule, and one only however often it is repeated', async () => {
    const { deps, startedIds } = createDeps()
    const schedule = await insertSchedule(deps, { enabled: false })
    const uuid = newUuid()
    const trigger = () => triggerSchedule(deps, ANYBODY, asUuid(schedule.id), { uuid })
    expect(await Promise.all([trigger(), trigger(), trigger()])).toEqual(Array(3).fill({ execution_id: uuid }))
    expect(await executionsOf(schedule, deps)).toMatchObject([{ id: uuid, status: 'pending', isManual: true }])
    expect(startedIds).toEqual([uuid])
  })
})

describe('the sweep', () => {
  it('starts what was recorded and not started, and fails what was ended in Temporal before it began', async () => {
    const { deps } = createDeps()
    const schedule = await insertSchedule(deps)
    const [lost, ended] = [newUuid(), newUuid()]
    const { id: scheduleId, organizationId } = schedule
    const createdAt = agoMs(5000)
    await deps.db.scheduleExecution.createMany({
      data: [lost, ended].map((id, index) => {
        const scheduledAt = new Date(createdAt.getTime() + index)
        return { id, organizationId, scheduleId, scheduledAt, createdAt, status: 'pending' }
      }),
    })
    const tried: string[] = []
    const startExecution = async ({ executionId }: { executionId: string }) => {
      tried.push(executionId)
      return executionId === lost
    }
    const swept = new Map<string, number>()
    for (let sweep = 0; sweep < 2; sweep++) await startLostExecutions(withWorkflows(deps, { startExecution }), swept)
    // Both at once, in any order.
    expect(tried.filter((id) => id === lost || id === ended).toSorted()).toEqual([lost, ended].toSorted())
    expect((await executionsOf(schedule, deps)).map(({ status }) => status)).toEqual(['pending', 'failed'])
  })

  it('fails what has begun and whose workflow is gone, unless its turn is to end it', async () => {
    const { deps } = createDeps()
    const schedule = await insertSchedule(deps)
    const begun = { status: 'running', startedAt: agoMs(60_000) } as const
    const { writer } = await createOpenTurn(deps)
    const [gone, running, recent] = await Promise.all([
      insertExecution(deps, schedule.id, begun),
      insertExecution(deps, schedule.id, begun),
      insertExecution(deps, schedule.id, { ...begun, startedAt: new Date() }),
    ])
    const waiting = await insertExecution(deps, schedule.id, { ...begun, id: writer.turnId })
    const isExecutionRunning = async (id: string) => id === running
    const { cursor, found } = await failLostExecutions(withWorkflows(deps, { isExecutionRunning }), null)
    expect(cursor).toBeNull()
    // Other tests leave executions too.
    expect(found).toBeGreaterThanOrEqual(1)
    const failed = (await executionsOf(schedule, deps)).filter(({ status }) => status === 'failed')
    expect(failed.map(({ id }) => id)).toEqual([gone])
    expect([running, recent, waiting]).not.toContain(gone)
  })

  it('is shared by the living workers, and each execution is one worker’s', async () => {
    const { deps } = createDeps()
    const schedule = await insertSchedule(deps)
    const insert = (given: object) => Promise.all([1, 2, 3, 4].map(() => insertExecution(deps, schedule.id, given)))
    const createdAt = agoMs(60_000)
    const ids = [
      ...(await insert({ createdAt })),
      ...(await insert({ status: 'running', startedAt: createdAt })),
      ...(await insert({ status: 'completed', noticeDueAt: createdAt })),
    ]
    await deps.db
      .$executeRaw`INSERT INTO processes (number, seen_at) SELECT n, 'infinity' FROM generate_series(1, 2) AS n`
    const seen: string[] = []
    const see = async (execution: string | { executionId: string }) =>
      seen.push(typeof execution === 'string' ? execution : execution.executionId) > 0
    const workflows = {
      startExecution: see,
      isExecutionRunning: see,
      notifyExecution: async (id: string) => void see(id),
    }
    for (const process of [1, 2]) {
      const own = { ...withWorkflows(deps, workflows), attempts: { ...deps.attempts, process } }
      await startLostExecutions(own, new Map())
      await failLostExecutions(own, null)
      // Temporal is not told of the same end twice.
      await notifyEndedTurns(own)
    }
    await deps.db.process.deleteMany()
    expect(seen.filter((id) => ids.includes(id)).sort()).toEqual(ids.sort())
  })

  it('tells a workflow that its turn has ended until Temporal has taken it', async () => {
    const { deps } = createDeps()
    const schedule = await insertSchedule(deps)
    const id = await insertExecution(deps, schedule.id, { status: 'completed', noticeDueAt: new Date() })
    const notified: string[] = []
    let isAway = true
    const notifyExecution = async (executionId: string) => {
      if (isAway) throw new Error('Temporal is away')
      notified.push(executionId)
    }
    const sweep = () => notifyEndedTurns(withWorkflows(deps, { notifyExecution }))
    await expect(sweep()).rejects.toThrow('away')
    isAway = false
    await sweep()
    await sweep()
    expect(notified.filter((one) => one === id)).toEqual([id])
  })
})
