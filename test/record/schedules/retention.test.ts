import type { Deps } from '../../../domain/deps.ts'
import { deleteOldExecutions, removeDeletedSchedules } from '../../../domain/schedules/retention.ts'
import { encryptHeaders } from '../../../domain/schedules/targets/headers.ts'
import type { ScheduleExecutionStatus } from '../../../prisma/generated/client.ts'
import { ANYBODY } from '../../support/by-hand.ts'
import { insertExecution, insertSchedules } from '../../support/schedule-rows.ts'
import { startService, type TestService } from '../../support/service.ts'

const HOUR_MS = 3_600_000
const NEVER = new AbortController().signal
const ago = (ms: number) => new Date(Date.now() - ms)

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
afterAll(() => service.stop())
afterEach(() => deps.db.schedule.deleteMany())

const { organizationId } = ANYBODY
const deletedAt = ago(HOUR_MS)
const one = async (more: object = {}): Promise<string> => {
  const [id = ''] = await insertSchedules(deps, 1, () => ({ organizationId, ...more }))
  return id
}
const statuses = async (scheduleId: string) =>
  (await deps.db.scheduleExecution.findMany({ where: { scheduleId }, orderBy: { id: 'asc' } })).map(
    ({ status }) => status,
  )
const read = (id: string) => deps.db.schedule.findUnique({ where: { id } })

describe('retention of executions', () => {
  it('deletes executions that ended or were skipped long ago, and leaves unfinished ones', async () => {
    const id = await one()
    const all: ScheduleExecutionStatus[] = ['pending', 'running', 'completed', 'failed', 'skipped']
    for (const status of all) await insertExecution(deps, id, { status, createdAt: ago(3 * HOUR_MS) })
    for (const status of all) await insertExecution(deps, id, { status, createdAt: ago(HOUR_MS) })
    await insertExecution(deps, id, { status: 'failed', createdAt: ago(3 * HOUR_MS), noticeDueAt: new Date() })
    expect(await deleteOldExecutions(deps, 2 * HOUR_MS, NEVER)).toBe(3)
    expect(await statuses(id)).toEqual(['pending', 'running', ...all, 'failed'])
    expect(await deleteOldExecutions(deps, 2 * HOUR_MS, NEVER)).toBe(0)
    const counts = await deps.db.scheduleCount.findMany({ where: { scheduleId: id }, orderBy: { status: 'asc' } })
    expect(counts.map(({ count }) => count)).toEqual([2, 2, 1, 2, 1])
  })

  it('deletes thousands in batches, and stops when its signal aborts', async () => {
    const id = await one()
    await deps.db.$executeRaw`
      INSERT INTO schedule_executions (id, organization_id, schedule_id, scheduled_at, status, created_at)
      SELECT gen_random_uuid(), ${organizationId}::uuid, ${id}::uuid, now() - n * interval '1 minute', 'completed', now() - interval '1 day'
      FROM generate_series(1, 2500) AS n`
    await expect(deleteOldExecutions(deps, HOUR_MS, AbortSignal.abort(new Error('over')))).rejects.toThrow('over')
    const both = await Promise.all([1, 2].map(() => deleteOldExecutions(deps, HOUR_MS, NEVER)))
    // The batches of one leave out what the other is about to delete.
    const left = await deleteOldExecutions(deps, HOUR_MS, NEVER)
    expect(both.reduce((sum, count) => sum + count, left)).toBe(2500)
    expect(await statuses(id)).toEqual([])
  })

  it('yields to a transaction that changes the counts of two schedules in another order', async () => {
    const ids = [await one(), await one()].sort()
    const endings: string[] = []
    for (const id of ids) {
      await insertExecution(deps, id, { status: 'failed', createdAt: ago(3 * HOUR_MS) })
      endings.unshift(await insertExecution(deps, id, { status: 'running' }))
    }
    let retention: Promise<number> | undefined
    await deps.db.$transaction(
      async (tx) => {
        for (const id of endings) {
          await tx.scheduleExecution.update({ where: { id }, data: { status: 'failed' } })
          retention ??= deleteOldExecutions(deps, 2 * HOUR_MS, NEVER)
          await new Promise((resolve) => setTimeout(resolve, 200))
        }
      },
      { timeout: 30_000 },
    )
    expect(await retention).toBe(2)
    for (const id of ids) expect(await statuses(id)).toEqual(['failed'])
  })
})

describe('retention of deleted schedules', () => {
  const texts = { name: 'A name', description: 'A text', targetInput: { url: 'https://example.com' } }

  it.each<[ScheduleExecutionStatus, boolean]>([
    ['pending', false],
    ['running', false],
    ['completed', true],
    ['failed', true],
    ['skipped', true],
  ])('erases its texts unless an execution is pending or running: %s', async (status, isErased) => {
    const id = await one({ ...texts, deletedAt })
    await deps.db.schedule.update({
      where: { id },
      data: { targetHeaders: encryptHeaders(deps, id, { Authorization: 'x' }) },
    })
    await insertExecution(deps, id, { status })
    expect(await removeDeletedSchedules(deps, NEVER)).toBe(0)
    const erased = { name: id, description: null, targetInput: {}, targetHeaders: null }
    expect(await read(id)).toMatchObject(isErased ? erased : { ...texts, targetHeaders: expect.any(Uint8Array) })
  })

  it('removes one without executions once its clock has been removed', async () => {
    const synced = await one({ deletedAt })
    const unsynced = await one({ deletedAt, clockDueAt: new Date() })
    const executed = await one({ deletedAt })
    await insertExecution(deps, executed, { status: 'completed', createdAt: ago(2 * HOUR_MS) })
    expect(await removeDeletedSchedules(deps, NEVER)).toBe(1)
    expect([await read(synced), await read(unsynced), await read(executed)]).toEqual([
      null,
      expect.anything(),
      expect.anything(),
    ])
    await deleteOldExecutions(deps, HOUR_MS, NEVER)
    expect(await removeDeletedSchedules(deps, NEVER)).toBe(1)
    expect([await read(executed), await deps.db.scheduleCount.count({ where: { scheduleId: executed } })]).toEqual([
      null,
      0,
    ])
  })

  it('leaves schedules that are not deleted', async () => {
    const id = await one({ ...texts, enabled: false })
    expect(await removeDeletedSchedules(deps, NEVER)).toBe(0)
    expect(await read(id)).toMatchObject(texts)
  })

  it('is done for all in batches', async () => {
    await insertSchedules(deps, 250, (n) => ({ organizationId, deletedAt, name: `${n}`, targetInput: { n } }))
    expect(await removeDeletedSchedules(deps, NEVER)).toBe(250)
  })
})
