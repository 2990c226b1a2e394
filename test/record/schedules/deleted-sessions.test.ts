import type { Deps } from '../../../domain/deps.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { encryptHeaders } from '../../../domain/schedules/targets/headers.ts'
import { ANYBODY, postUnanswered } from '../../support/by-hand.ts'
import { call, createSession, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
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
const read = (id: string) => deps.db.schedule.findUniqueOrThrow({ where: { id } })
const remove = (session: string) => call(service.url, 'DELETE', `/v1/sessions/${session}`)

async function createTargeted(count: number, more: object = {}) {
  const session = await createSession(service.url)
  const by = { organizationId, sessionId: toUuid(session), ...more }
  const targetInput = { session_id: session, message: 'SECRET' }
  const ids = await insertSchedules(deps, count, (n) => ({
    toolName: `${n}`,
    description: 'A text',
    targetInput,
    ...by,
  }))
  return { session, ids }
}

const erased = (id: string) => ({
  ...{ name: id, description: null, targetInput: {}, targetHeaders: null, sessionId: null, toolName: null },
  ...{ enabled: false, deletedAt: expect.any(Date), clockDueAt: expect.any(Date), revision: 2 },
})

describe('the schedules of a deleted session', () => {
  it('are deleted with it, and nothing of them is left but what Temporal has to be told', async () => {
    const { session, ids } = await createTargeted(2)
    const [id = ''] = ids
    await deps.db.schedule.update({ where: { id }, data: { targetHeaders: encryptHeaders(deps, id, { a: 'b' }) } })
    const other = await createTargeted(1)
    expect((await remove(session)).status).toBe(204)
    for (const one of ids) expect(await read(one)).toMatchObject(erased(one))
    expect(await read(other.ids[0] ?? '')).toMatchObject({ deletedAt: null, enabled: true, revision: 1 })
  })

  it('are erased also when they were deleted before, with an execution under way', async () => {
    const deletedAt = new Date('2026-01-01T00:00:00Z')
    const { session, ids } = await createTargeted(1, { deletedAt })
    const [id = ''] = ids
    await insertExecution(deps, id, { status: 'running' })
    await remove(session)
    expect(await read(id)).toMatchObject({ ...erased(id), deletedAt })
  })

  it('go with a session that is deleted by other means', async () => {
    const { session, ids } = await createTargeted(1)
    await deps.db.session.delete({ where: { id: toUuid(session) } })
    expect(await read(ids[0] ?? '')).toMatchObject(erased(ids[0] ?? ''))
  })

  it('have no execution of a turn that goes on', async () => {
    const { session, ids } = await createTargeted(1)
    const { turnUuid } = await postUnanswered(deps, session, 'Hello')
    await insertExecution(deps, ids[0] ?? '', { id: turnUuid, status: 'running', startedAt: new Date() })
    await remove(session)
    expect(await deps.db.scheduleExecution.findUnique({ where: { id: turnUuid } })).toMatchObject({
      ...{ status: 'failed', error: 'The turn was cancelled.' },
      ...{ completedAt: expect.any(Date), noticeDueAt: expect.any(Date) },
    })
  })

  it('do not hold up its deletion, nor a change of them, while both wait for each other', async () => {
    const { session, ids } = await createTargeted(2)
    let deletion: Promise<unknown> | undefined
    await deps.db.$transaction(
      async (tx) => {
        await tx.$queryRaw`SELECT 1 FROM schedules WHERE id = ${ids[1]}::uuid FOR UPDATE`
        deletion = remove(session)
        await waitFor(async () => {
          const [row] = await deps.db.$queryRaw<{ count: number }[]>`
            SELECT count(*)::integer AS count FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'`
          return row?.count === 1
        }, 'the deletion to wait')
        // As a change does that targets the session.
        await tx.$queryRaw`SELECT 1 FROM sessions WHERE id = ${toUuid(session)}::uuid FOR KEY SHARE`
        await insertWithin(tx, ids[1] ?? '')
      },
      { timeout: 30_000 },
    )
    expect(await deletion).toMatchObject({ status: 204 })
    for (const id of ids) expect(await read(id)).toMatchObject(erased(id))
  })
})

const insertWithin = (tx: Pick<Deps['db'], 'scheduleExecution'>, scheduleId: string) =>
  tx.scheduleExecution.create({
    data: { id: newUuid(), organizationId, scheduleId, scheduledAt: new Date(), status: 'pending' },
  })
