import type { Deps } from '../../../domain/deps.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import type { ScheduleExecutionStatus } from '../../../prisma/generated/client.ts'
import { ANYBODY } from '../../support/by-hand.ts'
import { insertExecution, insertSchedules } from '../../support/schedule-rows.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
afterAll(() => service.stop())

const { organizationId } = ANYBODY

/** Returns the counts as counted now and as kept, both ordered by schedule and status, and kept rows that are wrong. */
async function bothCounts() {
  const counted = await deps.db.$queryRaw`
    SELECT schedule_id, status, count(*)::integer AS count,
      sum(coalesce(extract(epoch FROM completed_at - started_at) * 1000, 0)::bigint)::bigint AS duration_ms
    FROM schedule_executions GROUP BY 1, 2 ORDER BY 1, 2`
  const kept = await deps.db.$queryRaw`SELECT * FROM schedule_counts WHERE count <> 0 ORDER BY schedule_id, status`
  const wrong = await deps.db.$queryRaw`SELECT * FROM schedule_counts WHERE count = 0 AND duration_ms <> 0`
  return { counted, kept, wrong }
}
async function expectRight(): Promise<void> {
  const { counted, kept, wrong } = await bothCounts()
  expect(kept).toEqual(counted)
  expect(wrong).toEqual([])
}

const random = (below: number): number => Math.floor(Math.random() * below)

/** A statement of the service: each changes executions of one schedule or of many. */
const CHANGES: ((schedules: string[]) => Promise<unknown>)[] = [
  // A launch.
  (schedules) =>
    deps.db.$executeRaw`
      INSERT INTO schedule_executions (id, organization_id, schedule_id, scheduled_at, is_manual, status)
      SELECT gen_random_uuid(), organization_id, id, now(), true,
        CASE WHEN n % 3 = 0 THEN 'skipped' ELSE 'pending' END::schedule_execution_status
      FROM schedules, generate_series(1, ${1 + random(5)}::integer) AS n
      WHERE id = ${schedules[random(schedules.length)]}::uuid`,
  // The beginnings of executions.
  () => deps.db.$executeRaw`
    UPDATE schedule_executions SET status = 'running', started_at = clock_timestamp(), attempts = attempts + 1
    WHERE id IN (
      SELECT id FROM schedule_executions WHERE status = 'pending' ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
    )`,
  // A change that counts nothing.
  () => deps.db.$executeRaw`
    UPDATE schedule_executions SET settled_attempt = settled_attempt + 1, notice_due_at = NULL
    WHERE id IN (SELECT id FROM schedule_executions ORDER BY random() LIMIT 3 FOR UPDATE SKIP LOCKED)`,
  // The ends of executions.
  () => deps.db.$executeRaw`
    UPDATE schedule_executions SET completed_at = clock_timestamp(),
      status = CASE WHEN random() < 0.5 THEN 'completed' ELSE 'failed' END::schedule_execution_status
    WHERE id IN (
      SELECT id FROM schedule_executions WHERE status IN ('running', 'pending')
      ORDER BY random() LIMIT ${1 + random(2)} FOR UPDATE SKIP LOCKED
    )`,
  // Retention.
  () => deps.db.$executeRaw`
    DELETE FROM schedule_executions WHERE id IN (
      SELECT id FROM schedule_executions WHERE status IN ('completed', 'failed', 'skipped')
      ORDER BY random() LIMIT ${random(6)} FOR UPDATE SKIP LOCKED
    )`,
]

describe('the counts of executions', () => {
  it('are right after many changes at once, and no change fails', async () => {
    const schedules = await insertSchedules(deps, 3, () => ({ organizationId }))
    const lane = async () => {
      for (let n = 0; n < 120; n++) await CHANGES[random(CHANGES.length)]?.(schedules)
    }
    await Promise.all(Array.from({ length: 6 }, lane))
    await expectRight()
    expect(await deps.db.scheduleExecution.count()).toBeGreaterThan(0)
    // A deleted schedule takes its executions and counts with it.
    await deps.db.schedule.delete({ where: { id: schedules[0] ?? '' } })
    await expectRight()
    expect(await deps.db.scheduleCount.count({ where: { scheduleId: schedules[0] ?? '' } })).toBe(0)
    await deps.db.schedule.deleteMany()
    expect(await deps.db.scheduleCount.count()).toBe(0)
  })

  it('include two executions that end at the same time', async () => {
    const [schedule = ''] = await insertSchedules(deps, 1, () => ({ organizationId }))
    const times = { startedAt: new Date('2030-01-01T00:00:00Z'), completedAt: new Date('2030-01-01T00:00:02.500Z') }
    const ids = [1, 2].map(() => insertExecution(deps, schedule, { status: 'running', startedAt: times.startedAt }))
    const end = (id: string) =>
      deps.db.$transaction(async (tx) => {
        await tx.scheduleExecution.update({ where: { id }, data: { ...times, status: 'completed' } })
        await tx.$executeRaw`SELECT pg_sleep(0.1)::text`
      })
    await Promise.all((await Promise.all(ids)).map(end))
    const counts = await deps.db.scheduleCount.findMany({ where: { scheduleId: schedule, count: { not: 0 } } })
    expect(counts).toEqual([{ scheduleId: schedule, status: 'completed', count: 2, durationMs: 5000n }])
    await expectRight()
  })

  it('leave nothing of executions that a transaction has not committed', async () => {
    const [schedule = ''] = await insertSchedules(deps, 1, () => ({ organizationId }))
    const abort = deps.db.$transaction(async (tx) => {
      const data = { id: newUuid(), organizationId, scheduleId: schedule, scheduledAt: new Date() }
      await tx.scheduleExecution.create({ data: { ...data, status: 'pending' } })
      throw new Error('abort')
    })
    await expect(abort).rejects.toThrow('abort')
    expect(await deps.db.scheduleCount.count({ where: { scheduleId: schedule } })).toBe(0)
  })
})

describe('the end of a turn', () => {
  const ENDS: [string, string | null, ScheduleExecutionStatus, string | null][] = [
    ['completed', null, 'completed', null],
    ['failed', 'The model is away.', 'failed', 'The model is away.'],
    ['failed', null, 'failed', 'The turn failed.'],
    ['cancelled', null, 'failed', 'The turn was cancelled.'],
  ]
  it.each(ENDS)('ends its execution: %s, %s', async (status, error, ended, reason) => {
    const session = await deps.db.session.create({
      data: { id: newUuid(), organizationId, harnessId: newUuid(), updatedAt: new Date() },
    })
    const [schedule = ''] = await insertSchedules(deps, 1, () => ({ organizationId, sessionId: session.id }))
    const startedAt = new Date('2030-01-01T00:00:00Z')
    const id = await insertExecution(deps, schedule, { status: 'running', startedAt })
    await deps.db.$executeRaw`
      INSERT INTO turns (id, organization_id, session_id, input_sequence, status)
      VALUES (${id}::uuid, ${organizationId}::uuid, ${session.id}::uuid, 1, 'active')`
    const finishedAt = new Date('2030-01-01T00:00:07Z')
    const end = () => deps.db.$executeRaw`
      UPDATE turns SET status = ${status}::turn_status, error = ${error}, finished_at = ${finishedAt} WHERE id = ${id}::uuid`
    await end()
    const execution = { status: ended, error: reason, completedAt: finishedAt, noticeDueAt: finishedAt }
    expect(await deps.db.scheduleExecution.findUnique({ where: { id } })).toMatchObject(execution)
    await deps.db.scheduleExecution.update({ where: { id }, data: { noticeDueAt: null } })
    await end()
    expect(await deps.db.scheduleExecution.findUnique({ where: { id } })).toMatchObject({ noticeDueAt: null })
    await expectRight()
  })
})
