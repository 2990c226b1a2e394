import { newUuid } from '../../domain/kit/ids.ts'
import { call, createSession, expectError, type Json, unknownId, waitFor } from '../support/http.ts'
import { message, NOOP, request, SCHEDULES, scheduleCalls, uuidOf, YEARLY } from '../support/schedules.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeEach(async () => {
  api = await newOrganization()
})
const { add, addSchedule, read, patch, rowOf } = scheduleCalls(() => api)

/** Inserts executions, oldest first, a minute apart from `minutes` on. Ended ones took `durationMs`. */
async function insertExecutions(path: string, statuses: string[], durationMs = 0, minutes = 0): Promise<string[]> {
  const insert = `
    INSERT INTO schedule_executions (id, organization_id, schedule_id, scheduled_at, status, created_at, started_at, completed_at)
    SELECT $1, $2, $3, at, $4::schedule_execution_status, at,
      CASE WHEN $4 IN ('running', 'completed', 'failed') THEN at END,
      CASE WHEN $4 IN ('completed', 'failed') THEN at + make_interval(secs => $5::float / 1000) END
    FROM (SELECT timestamptz '2026-01-01Z' + make_interval(mins => $6) AS at) AS place`
  const ids: string[] = []
  for (const [position, status] of statuses.entries()) {
    const id = newUuid()
    await api.query(insert, [id, api.uuid, uuidOf(path), status, durationMs, minutes + position])
    ids.push(id)
  }
  return ids
}

describe('schedules', () => {
  it('are created, read, listed newest first and deleted', async () => {
    const first = await add({ name: ' First ', target: { ...NOOP, input: { any: ['thing', 1] } } })
    const defaults = { timezone: 'UTC', enabled: true, catch_up_missed: false, description: null, retry_policy: null }
    expect(first).toMatchObject({
      status: 201,
      body: {
        id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
        ...{ name: 'First', cron_expression: YEARLY, ...defaults, max_catch_up: null, max_concurrent: null },
        ...{ target: { ...NOOP, input: { any: ['thing', 1] } }, last_triggered_at: null },
      },
    })
    const given = {
      ...{ name: 'Second', description: 'Ours', cron_expression: '*/5 9-17 * * MON-FRI', timezone: 'Europe/Berlin' },
      ...{ enabled: false, catch_up_missed: true, max_catch_up: 3, max_concurrent: 0 },
      retry_policy: { max_attempts: 3, backoff_coefficient: 1.5 },
    }
    const second = await add(given)
    expect(second).toMatchObject({
      status: 201,
      body: { ...given, max_concurrent: null, next_trigger_at: null, next_triggers: [] },
    })
    const path = `${SCHEDULES}/${second.body.id}`
    expect(await read(path)).toEqual(second.body)
    expect(await read(SCHEDULES)).toEqual({
      data: [second.body, await read(`${SCHEDULES}/${first.body.id}`)],
      total: 2,
    })
    expect(await call(api, 'DELETE', path)).toMatchObject({ status: 204, body: '' })
    for (const [method, at] of [
      ['GET', ''],
      ['DELETE', ''],
      ['PATCH', ''],
      ['POST', '/pause'],
      ['POST', '/resume'],
      ['POST', '/trigger'],
      ['GET', '/stats'],
      ['GET', '/executions'],
    ] as const) {
      expectError(await call(api, method, path + at, method === 'PATCH' ? {} : undefined), 404, 'Schedule not found')
    }
    expect((await read(SCHEDULES)).total).toBe(1)
    expectError(await call(api, 'GET', `${SCHEDULES}/${unknownId('session')}`), 400, /^schedule_id: must be a UUID/)
    expectError(await call(api, 'GET', `/v1/durable/executions/${newUuid()}`), 404, 'Execution not found')
  })

  it('are listed by filters and in parts, with the number of all that match', async () => {
    const paths: string[] = []
    for (const enabled of [true, false, true]) paths.push(await addSchedule({ enabled }))
    paths.push(await addSchedule({ target: message({ session_id: await createSession(api), message: 'Hi' }) }))
    const listed = async (query: string): Promise<[number[], number]> => {
      const { data, total } = await read(`${SCHEDULES}?${query}`)
      return [data.map(({ id }: Json) => paths.indexOf(`${SCHEDULES}/${id}`)), total]
    }
    expect(await listed('')).toEqual([[3, 2, 1, 0], 4])
    expect(await listed('enabled=true')).toEqual([[3, 2, 0], 3])
    expect(await listed('enabled=false')).toEqual([[1], 1])
    expect(await listed('target_type=workflow')).toEqual([[3], 1])
    expect(await listed('target_type=activity&enabled=1')).toEqual([[2, 0], 2])
    expect(await listed('target_type=other')).toEqual([[], 0])
    expect(await listed('limit=2')).toEqual([[3, 2], 4])
    expect(await listed('limit=2&offset=1')).toEqual([[2, 1], 4])
    expect(await listed('offset=4')).toEqual([[], 4])
    expectError(await call(api, 'GET', `${SCHEDULES}?enabled=maybe`), 400, /^enabled: must be true or false/)
    for (const limit of [-1, 0]) expectError(await call(api, 'GET', `${SCHEDULES}?limit=${limit}`), 400, /^limit: /)
  })

  it('that are large are listed whole', async () => {
    const session_id = await createSession(api)
    const texts = Array.from({ length: 4 }, (_, n) => `${n}`.repeat(900_000))
    for (const text of texts) await addSchedule({ target: message({ session_id, message: text }) })
    const { data, total } = await read(SCHEDULES)
    expect([data.map(({ target }: Json) => target.input.message), total]).toEqual([texts.reverse(), 4])
  })

  it('have names of their own, which deletion sets free', async () => {
    const path = await addSchedule({ name: 'Daily' })
    expectError(await add({ name: 'Daily' }), 409, /^name: the organization has a schedule of that name already/)
    expect((await call(api, 'DELETE', path)).status).toBe(204)
    const answers = await Promise.all(Array.from({ length: 4 }, () => add({ name: 'Daily' })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    const elsewhere = await newOrganization()
    const body = { name: 'Daily', cron_expression: YEARLY, target: NOOP }
    expect((await call(elsewhere, 'POST', SCHEDULES, body)).status).toBe(201)
  })

  it('are at most as many as the quota, also when they are created at once', async () => {
    const path = await addSchedule({ enabled: false })
    const columns = 'cron_expression, timezone, catch_up_missed, target_type, target_name, target_input, enabled'
    await api.query(
      `INSERT INTO schedules (id, organization_id, name, ${columns}, clock_due_at)
       SELECT gen_random_uuid(), organization_id, n, ${columns}, NULL FROM schedules, generate_series(1, 997) AS n
       WHERE id = $1`,
      [uuidOf(path)],
    )
    const answers = await Promise.all(Array.from({ length: 4 }, () => add()))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409])
    expectError(await add(), 409, /^The organization has 1000 schedules, which is the limit; delete one first$/)
    expect((await read(`${SCHEDULES}?limit=1`)).total).toBe(1000)
    expect((await call(api, 'DELETE', path)).status).toBe(204)
    await addSchedule()
  })
})

describe('a change', () => {
  it('merges what is given, and null changes nothing', async () => {
    const path = await addSchedule({ description: 'Old', max_concurrent: 1, retry_policy: { max_attempts: 2 } })
    const before = await read(path)
    const same = { ...before, updated_at: expect.any(String) }
    const nothing = Object.fromEntries(Object.keys(before).map((field) => [field, null]))
    for (const body of [{}, nothing]) expect(await patch(path, body)).toMatchObject({ status: 200, body: same })
    const changes = [
      { name: ' Another ' },
      { description: '' },
      { cron_expression: '5 4 * * *' },
      { timezone: 'America/New_York' },
      { catch_up_missed: true },
      { max_catch_up: 5 },
      { max_concurrent: 7 },
      { retry_policy: { initial_interval_ms: 10 } },
      { target: request({}) },
      { enabled: false },
    ]
    const answers = await Promise.all(changes.map((change) => patch(path, change)))
    expect(answers.map(({ status }) => status)).toEqual(changes.map(() => 200))
    const { target: _, ...expected } = Object.assign({}, ...changes)
    expect(await read(path)).toMatchObject({ ...expected, name: 'Another', target: { name: 'http_request' } })
    const none = { max_catch_up: 0, max_concurrent: 0, retry_policy: {} }
    const cleared = { max_catch_up: null, max_concurrent: null, retry_policy: null }
    expect(await patch(path, none)).toMatchObject({ status: 200, body: cleared })
    expect((await rowOf(path)).retry_policy).toBeNull()
    expect(await add({ ...none, name: 'Third' })).toMatchObject({ status: 201, body: cleared })
  })

  it('to a name that another schedule has is refused, and to its own is not', async () => {
    const path = await addSchedule({ name: 'Mine' })
    await addSchedule({ name: 'Theirs' })
    expectError(await patch(path, { name: 'Theirs' }), 409, /^name: .*choose another name/)
    expectError(await patch(path, { name: ' ' }), 400, /^name: must not be empty/)
    expect(await patch(path, { name: 'Mine' })).toMatchObject({ status: 200, body: { name: 'Mine' } })
  })

  it.each<[change: object, isNews: boolean]>([
    [{ description: 'New' }, false],
    [{ name: 'New', max_concurrent: 1, catch_up_missed: true, max_catch_up: 1, retry_policy: {} }, false],
    [{ enabled: true, cron_expression: YEARLY, timezone: 'UTC' }, false],
    [{ cron_expression: '1 0 1 1 *' }, true],
    [{ timezone: 'Asia/Tokyo' }, true],
    [{ enabled: false }, true],
  ])('of %j begins a new clock: %s', async (change, isNews) => {
    const path = await addSchedule()
    const before = await rowOf(path)
    expect((await patch(path, change)).status).toBe(200)
    const after = await rowOf(path)
    expect(after.revision - before.revision).toBe(isNews ? 1 : 0)
    expect(after.launched_until > before.launched_until).toBe(isNews)
  })

  it('of the target is told to Temporal, and goes on with the clock', async () => {
    const path = await addSchedule()
    const before = await rowOf(path)
    await patch(path, { target: request({}) })
    const { revision, launched_until, clock_due_at } = await rowOf(path)
    expect({ revision, launched_until, clock_due_at }).toEqual({
      revision: before.revision + 1,
      launched_until: before.launched_until,
      clock_due_at: null,
    })
  })

  it('that pauses or resumes is made once, and keeps the reason', async () => {
    const path = await addSchedule()
    const steps = [
      ['pause', false, 'paused', 2],
      ['pause', false, 'paused', 2],
      ['resume', true, null, 3],
      ['resume', true, null, 3],
    ] as const
    for (const [step, enabled, reason, revision] of steps) {
      expect(await call(api, 'POST', `${path}/${step}`)).toMatchObject({ status: 200, body: { enabled } })
      expect(await rowOf(path)).toMatchObject({ enabled, disabled_reason: reason, revision })
    }
    const created = await addSchedule({ enabled: false })
    await call(api, 'POST', `${created}/pause`)
    expect(await rowOf(created)).toMatchObject({ disabled_reason: 'created disabled', revision: 1 })
    await patch(created, { enabled: true })
    expect(await rowOf(created)).toMatchObject({ disabled_reason: null, revision: 2 })
  })
})

describe('executions', () => {
  const list = async (path: string, query = ''): Promise<[string[], number]> => {
    const { data, total } = await read(`${path}/executions?${query}`)
    return [data.map(({ id }: Json) => id), total]
  }

  it('are listed newest first, by status and in parts, with the number of all that match', async () => {
    const path = await addSchedule({ enabled: false })
    expect(await list(path)).toEqual([[], 0])
    const [a = '', b = '', c = '', d = '', e = ''] = await insertExecutions(
      path,
      ['completed', 'failed', 'skipped', 'completed', 'failed'],
      1500,
    )
    expect(await list(path)).toEqual([[e, d, c, b, a], 5])
    expect(await list(path, 'status=completed')).toEqual([[d, a], 2])
    expect(await list(path, 'status=pending')).toEqual([[], 0])
    expect(await list(path, 'limit=2&offset=1')).toEqual([[d, c], 5])
    expect(await list(path, 'status=failed&offset=1')).toEqual([[b], 2])
    expect(await list(path, 'offset=999999999999999999999')).toEqual([[], 5])
    expectError(await call(api, 'GET', `${path}/executions?status=done`), 400, /^status: /)
    const none = { turn_id: null, session_id: null, http_status: null, answer: null }
    const common = { schedule_id: uuidOf(path), task_id: null, error: null, ...none }
    const at = (minute: number, ms = 0) => new Date(Date.UTC(2026, 0, 1, 0, minute, 0, ms)).toISOString()
    const place = (minute: number) => ({ scheduled_at: at(minute), created_at: at(minute), started_at: at(minute) })
    expect(await read(`/v1/durable/executions/${a}`)).toEqual({
      ...{ id: a, ...common, ...place(0), completed_at: at(0, 1500), duration_ms: 1500 },
      ...{ status: 'completed', workflow_id: a },
    })
    expect(await read(`/v1/durable/executions/${c}`)).toEqual({
      ...{ id: c, ...common, ...place(2), completed_at: null, duration_ms: null, status: 'skipped', workflow_id: null },
    })
  })

  it('are counted', async () => {
    const path = await addSchedule({ enabled: false })
    const none = { successful_executions: 0, failed_executions: 0, skipped_executions: 0 }
    const stats = () => read(`${path}/stats`)
    expect(await stats()).toEqual({
      ...{ total_executions: 0, ...none, avg_duration_ms: null, last_execution_status: null },
    })
    await insertExecutions(path, ['completed', 'completed', 'failed', 'skipped'], 1000)
    await insertExecutions(path, ['failed', 'skipped'], 2001, 10)
    expect(await stats()).toEqual({
      ...{ total_executions: 6, successful_executions: 2, failed_executions: 2, skipped_executions: 2 },
      ...{ avg_duration_ms: 1250, last_execution_status: 'skipped' },
    })
  })

  it('can be read after their schedule is deleted, which forgets what it would have said', async () => {
    const path = await addSchedule({ description: 'Ours', target: request({ headers: { 'X-A': 'one' } }) })
    const [id] = await insertExecutions(path, ['completed'])
    const before = await read(`/v1/durable/executions/${id}`)
    await call(api, 'DELETE', path)
    expect(await read(`/v1/durable/executions/${id}`)).toEqual(before)
    const erased = { description: null, target_input: {}, target_headers: null, enabled: false }
    expect(await rowOf(path)).toMatchObject(erased)
  })

  it('that have begun keep what they need when their schedule is deleted', async () => {
    const path = await addSchedule({ description: 'Ours', target: request({ headers: { 'X-A': 'one' } }) })
    await insertExecutions(path, ['running'])
    const before = await rowOf(path)
    expect((await call(api, 'DELETE', path)).status).toBe(204)
    const { description, target_input, target_headers } = before
    expect(await rowOf(path)).toMatchObject({ description, target_input, target_headers })
  })

  it('that are triggered with an Idempotency-Key are one', async () => {
    const path = await addSchedule({ enabled: false })
    const trigger = (key: string) => call(api, 'POST', `${path}/trigger`, undefined, { 'Idempotency-Key': key })
    const answers = await Promise.all(['a', 'a', 'b'].map(trigger))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const ids = new Set(answers.map(({ body }) => body.execution_id))
    expect([ids.size, (await list(path))[1]]).toEqual([2, 2])
    const isOver = async () => (await read(`${path}/stats`)).successful_executions === 2
    await waitFor(isOver, 'both executions to complete')
  })
})
