import type { Deps } from '../../../domain/deps.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { listSessions } from '../../../domain/sessions/list.ts'
import { ANYBODY } from '../../support/by-hand.ts'
import { call, createSession, type Json } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { insertSchedules } from '../../support/schedule-rows.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
let ids: string[]
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
  ids = []
  for (let n = 0; n < 4; n++) ids.push(await createSession(service.url))
  const add = (count: number, session: string | undefined, more: object) =>
    insertSchedules(deps, count, (n) => ({
      organizationId: ANYBODY.organizationId,
      sessionId: toUuid(session ?? ''),
      // Schedules made by tools and by administrators count alike.
      toolName: n % 2 === 0 ? newUuid() : null,
      ...more,
    }))
  await add(3, ids[0], {})
  await add(1, ids[1], {})
  await add(2, ids[1], { enabled: false })
  await add(2, ids[2], { deletedAt: new Date() })
})
afterAll(() => service.stop())

describe('active_schedule_count', () => {
  it('is the number of enabled schedules that target the session', async () => {
    const { data } = (await call(service.url, 'GET', '/v1/sessions')).body
    const listed = new Map(data.map((session: Json) => [session.id, session.active_schedule_count]))
    expect(ids.map((id) => listed.get(id))).toEqual([3, 1, 0, 0])
    const read = ids.map((id) => call(service.url, 'GET', `/v1/sessions/${id}`))
    expect((await Promise.all(read)).map(({ body }) => body.active_schedule_count)).toEqual([3, 1, 0, 0])
  })

  it('is counted by one statement for a page of a list', async () => {
    const statements: string[] = []
    const db = deps.db.$extends({
      query: {
        schedule: {
          $allOperations: ({ operation, args, query }) => {
            statements.push(operation)
            return query(args)
          },
        },
      },
    })
    const list = await listSessions({ ...deps, db: db as unknown as Deps['db'] }, ANYBODY, { limit: 20, offset: 0 })
    let sessions = 0
    for await (const page of list.pages) sessions += page.length
    expect([sessions, statements.length]).toEqual([4, 1])
  })
})
