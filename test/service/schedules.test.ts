import { newUuid } from '../../domain/ids.ts'
import { call, createSession, expectError, type Json, textMessage, unknownId, waitFor } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeEach(async () => {
  api = await newOrganization()
})

const SCHEDULES = '/v1/durable/schedules'
const YEARLY = '0 0 1 1 *'
const NOOP = { type: 'activity', name: 'noop' }
const URL = 'https://hooks.example/a?b=1'
const HEADER = 'text-of-a-test in a header'

const add = (more: object = {}) =>
  call(api, 'POST', SCHEDULES, { name: newUuid(), cron_expression: YEARLY, target: NOOP, ...more })
const addSchedule = async (more: object = {}): Promise<string> => {
  const answer = await add(more)
  expect(answer).toMatchObject({ status: 201 })
  return `${SCHEDULES}/${answer.body.id}`
}
const read = async (path: string): Promise<Json> => (await call(api, 'GET', path)).body
const patch = (path: string, body: object) => call(api, 'PATCH', path, body)
const uuidOf = (path: string) => path.slice(SCHEDULES.length + 1)
const rowOf = async (path: string): Promise<Json> =>
  (await api.query('SELECT * FROM schedules WHERE id = $1', [uuidOf(path)]))[0]

const request = (input: object) => ({ type: 'activity', name: 'http_request', input: { url: URL, ...input } })
const message = (input: object) => ({ type: 'workflow', name: 'session_message', input })
const addAgent = async (): Promise<string> =>
  (await call(api, 'POST', '/v1/agents', { name: 'An agent', system_prompt: 'Help.' })).body.id

/** Inserts executions, oldest first, a minute apart from `minutes` on. Those that have ended took the given time. */
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
    expect(second).toMatchObject({ status: 201, body: { ...given, next_trigger_at: null } })
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
    expect(await listed('limit=0')).toEqual([[], 4])
    expectError(await call(api, 'GET', `${SCHEDULES}?enabled=maybe`), 400, /^enabled: must be true or false/)
    expectError(await call(api, 'GET', `${SCHEDULES}?limit=-1`), 400, /^limit: /)
  })

  it('that are large are listed whole', async () => {
    const session_id = await createSession(api)
    const texts = Array.from({ length: 4 }, (_, n) => `${n}`.repeat(900_000))
    for (const text of texts) await addSchedule({ target: message({ session_id, message: text }) })
    const { data, total } = await read(SCHEDULES)
    expect([data.map(({ target }: Json) => target.input.message), total]).toEqual([texts.reverse(), 4])
  })

  const target = (given: object) => ({ target: { ...NOOP, ...given } })
  const of = (input: unknown) => ({ target: message(input as object) })
  const bytes = (count: number) => 'x'.repeat(count)
  const manyHeaders = (count: number, value: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-${n}`, value]))
  const SESSION = unknownId('session')

  it.each<[what: string, body: object, sentence: RegExp]>([
    ['no name', { name: undefined }, /^name: /],
    ['an empty name', { name: ' ' }, /^name: must not be empty/],
    ['a long name', { name: bytes(2049) }, /^name: must have at most 2048/],
    ['a long name of other letters', { name: 'ü'.repeat(1025) }, /^name: must be at most 2048 bytes/],
    ['a long description', { description: bytes(10_241) }, /^description: must be at most 10240 bytes/],
    ['no expression', { cron_expression: undefined }, /^cron_expression: /],
    ['an empty expression', { cron_expression: '' }, /cron/i],
    ['eight fields', { cron_expression: '* * * * * * * *' }, /cron/i],
    ['a minute that there is not', { cron_expression: '61 * * * *' }, /cron/i],
    ['only the 30th of February', { cron_expression: '0 0 30 2 *' }, /cron/i],
    ['each second', { cron_expression: '* * * * * *' }, /cron/i],
    ['words', { cron_expression: 'every day' }, /cron/i],
    ['a long expression', { cron_expression: bytes(1025) }, /^cron_expression: must be at most 1024/],
    ['an unknown time zone', { timezone: 'Mars/Olympus' }, /^timezone: /],
    ['no time zone', { timezone: '' }, /^timezone: /],
    ['a count below zero', { max_catch_up: -1 }, /^max_catch_up: /],
    ['a count that is too large', { max_concurrent: 2 ** 31 }, /^max_concurrent: /],
    ['a fraction', { max_concurrent: 1.5 }, /^max_concurrent: /],
    ['a word for a flag', { enabled: 'no' }, /^enabled: /],
    ['an unknown key of the retry policy', { retry_policy: { attempts: 3 } }, /^retry_policy: .*attempts/],
    ['no attempts', { retry_policy: { max_attempts: 0 } }, /^retry_policy\.max_attempts: /],
    ['a shrinking interval', { retry_policy: { backoff_coefficient: 0.5 } }, /^retry_policy\.backoff_coefficient: /],
    ['no target', { target: undefined }, /^target: /],
    ['an unknown type', target({ type: 'webhook' }), /^target\.type: must be workflow or activity$/],
    ["an object's own name", target({ type: 'constructor' }), /^target\.type: must be workflow or activity$/],
    [
      'an unknown workflow',
      target({ type: 'workflow', name: 'noop' }),
      /^target\.name: .*session_message or agent_turn/,
    ],
    ['an unknown activity', target({ name: 'session_message' }), /^target\.name: .*http_request or noop/],
    ['a list to do nothing with', target({ input: [1] }), /^target\.input: /],
    ['a word to do nothing with', target({ input: 'x' }), /^target\.input: /],
    ['much to do nothing with', target({ input: { x: bytes(10_240) } }), /^target\.input: must be at most 10240 bytes/],
    ['no input of a message', { target: { type: 'workflow', name: 'session_message' } }, /^target\.input: /],
    ['no message', of({ session_id: SESSION }), /^target\.input\.message: /],
    ['an empty message', of({ session_id: SESSION, message: '' }), /^target\.input\.message: must not be empty/],
    [
      'a long message',
      of({ session_id: SESSION, message: bytes(1_048_577) }),
      /^target\.input\.message: must be at most/,
    ],
    [
      'no parts',
      of({ session_id: SESSION, message: { content: [] } }),
      /^target\.input\.message\.content: must have at/,
    ],
    [
      'a part that is none',
      of({ session_id: SESSION, message: { content: [{ type: 'sound' }] } }),
      /^target\.input\.message\.content\.0\.type: /,
    ],
    [
      'an image without bytes',
      of({ session_id: SESSION, message: { content: [{ type: 'image' }] } }),
      /^target\.input\.message\.content\.0: an image needs/,
    ],
    [
      'a message of the model',
      of({ session_id: SESSION, message: { role: 'agent', content: textMessage('Hi').message.content } }),
      /^target\.input\.message\.role: must be "user"/,
    ],
    ['no receiver', of({ message: 'Hi' }), /^target\.input: needs either session_id, or agent_id/],
    [
      'two receivers',
      of({ session_id: SESSION, agent_id: unknownId('agent'), message: 'Hi' }),
      /^target\.input: needs either/,
    ],
    ['an id that is none', of({ session_id: 'mine', message: 'Hi' }), /^target\.input\.session_id: must be session_/],
    [
      'an unknown session',
      of({ session_id: SESSION, message: 'Hi' }),
      new RegExp(`^target\\.input\\.session_id: there is no session ${SESSION}$`),
    ],
    [
      'an unknown agent',
      of({ agent_id: unknownId('agent'), message: 'Hi' }),
      /^target\.input\.agent_id: there is no agent agent_/,
    ],
    ['no address', { target: { type: 'activity', name: 'http_request' } }, /^target\.input: /],
    ['an address that is none', { target: request({ url: 'hooks' }) }, /^target\.input\.url: The address is no URL/],
    ['another protocol', { target: request({ url: 'ftp://a.example' }) }, /^target\.input\.url: Only http and https/],
    ['a fragment', { target: request({ url: `${URL}#a` }) }, /^target\.input\.url: must have no fragment/],
    ['a password', { target: request({ url: 'https://me:sk-x@a.example' }) }, /^target\.input\.url: .*password/],
    ['a private address', { target: request({ url: 'http://10.0.0.1/' }) }, /^target\.input\.url: .*not on the public/],
    ['this machine', { target: request({ url: 'http://localhost/' }) }, /^target\.input\.url: .*not on the public/],
    [
      'a long address',
      { target: request({ url: `${URL}${bytes(2048)}` }) },
      /^target\.input\.url: must be at most 2048/,
    ],
    ['an unknown method', { target: request({ method: 'TRACE' }) }, /^target\.input\.method: must be one of GET, HEAD/],
    [
      'a body of GET',
      { target: request({ method: 'get', body: 'x' }) },
      /^target\.input\.body: cannot be sent with GET/,
    ],
    [
      'a long text',
      { target: request({ body: bytes(262_145) }) },
      /^target\.input\.body: must be at most 262144 bytes/,
    ],
    [
      'long JSON',
      { target: request({ body: [bytes(262_144)] }) },
      /^target\.input\.body: must be at most 262144 bytes/,
    ],
    ['the host', { target: request({ headers: { Host: 'a.example' } }) }, /^target\.input\.headers: Host is set by/],
    [
      'a length',
      { target: request({ headers: { 'content-length': '1' } }) },
      /^target\.input\.headers: content-length/,
    ],
    [
      'a key of its own',
      { target: request({ headers: { 'Idempotency-Key': '1' } }) },
      /^target\.input\.headers: Idempotency-Key is set by/,
    ],
    [
      'a line break in a header',
      { target: request({ headers: { 'X-A': `sk-x\nX-Evil: 1` } }) },
      /^target\.input\.headers\.X-A: must be printable/,
    ],
    ['a header without a name', { target: request({ headers: { '': 'x' } }) }, /^target\.input\.headers.*is no name/],
    [
      'a header twice',
      { target: request({ headers: { 'X-A': '1', 'x-a': '2' } }) },
      /^target\.input\.headers: x-a is giv/,
    ],
    ['a mask', { target: request({ headers: { 'X-A': '***' } }) }, /^target\.input\.headers: \*\*\* stands for .*X-A/],
    [
      '101 headers',
      { target: request({ headers: manyHeaders(101, 'x') }) },
      /^target\.input\.headers: must be at most 100/,
    ],
    [
      'large headers',
      { target: request({ headers: manyHeaders(9, bytes(8000)) }) },
      /^target\.input\.headers: .*65536/,
    ],
  ])('are refused with %s', async (_, body, sentence) => {
    const refused = await add(body)
    expectError(refused, 400, sentence)
    expect(refused.body.error.length).toBeLessThan(500)
    expect(refused.body.error).not.toMatch(/sk-|X-Evil/)
    expect((await read(SCHEDULES)).total).toBe(0)
    const isChange = Object.entries(body).every(([field, value]) => field !== 'name' && value !== undefined)
    if (!isChange) return
    const path = await addSchedule()
    const before = await read(path)
    expectError(await patch(path, body), 400, sentence)
    expect(await read(path)).toEqual(before)
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
    expectError(await add(), 409, /^The organization has 1000 schedules, as many as it can; delete one first$/)
    expect((await read(`${SCHEDULES}?limit=1`)).total).toBe(1000)
    expect((await call(api, 'DELETE', path)).status).toBe(204)
    await addSchedule()
  })
})

describe('a target', () => {
  it.each<[given: object, stored: object]>([
    [{}, { method: 'GET', headers: {} }],
    [{ url: ' HTTPS://Hooks.example:443/x ' }, { url: 'https://hooks.example/x', method: 'GET', headers: {} }],
    [{ body: 'text' }, { method: 'POST', headers: {}, body: 'text' }],
    [
      { body: { a: [1, null] }, method: 'patch' },
      { method: 'PATCH', headers: {}, body: { a: [1, null] } },
    ],
    [{ body: false }, { method: 'POST', headers: {}, body: false }],
    [
      { body: null, method: null, headers: null },
      { method: 'GET', headers: {} },
    ],
    [
      { method: 'delete', headers: { 'Content-Type': 'text/plain', Authorization: HEADER } },
      { method: 'DELETE', headers: { 'Content-Type': '***', Authorization: '***' } },
    ],
  ])('is a request: %j', async (given, stored) => {
    const path = await addSchedule({ target: request(given) })
    expect((await read(path)).target).toEqual({
      type: 'activity',
      name: 'http_request',
      input: { url: URL, ...stored },
    })
  })

  it('is a message to a session or for an agent, under either name', async () => {
    const [session_id, agent_id] = [await createSession(api), await addAgent()]
    const { content } = textMessage('Hi').message
    for (const [name, input, sessionId] of [
      ['session_message', { session_id, message: 'Hi' }, toUuid(session_id)],
      ['agent_turn', { agent_id, message: { content } }, null],
    ] as const) {
      const path = await addSchedule({ target: { type: 'workflow', name, input } })
      expect((await read(path)).target).toEqual({ type: 'workflow', name, input })
      expect((await rowOf(path)).session_id).toBe(sessionId)
    }
    const short = {
      session_id: session_id.replace('session_', 'sess_'),
      agent_id: null,
      message: { role: 'user', content },
    }
    const { target } = await read(await addSchedule({ target: message(short) }))
    expect(target.input).toEqual({ session_id, message: { content } })
  })

  it('is not for an agent that is archived', async () => {
    const agent_id = await addAgent()
    await call(api, 'DELETE', `/v1/agents/${agent_id}`)
    expectError(
      await add({ target: message({ agent_id, message: 'Hi' }) }),
      400,
      /^target\.input\.agent_id: .*archived/,
    )
  })

  it('that is a session takes its schedules with it, also those that are created meanwhile', async () => {
    for (let round = 0; round < 5; round++) {
      const session_id = await createSession(api)
      const target = message({ session_id, message: 'Hi' })
      const [one, two] = [await addSchedule({ target }), await addSchedule()]
      const answers = await Promise.all([
        add({ target }),
        call(api, 'DELETE', `/v1/sessions/${session_id}`),
        patch(one, { target }),
        patch(two, { target }),
      ])
      const [created, deleted, same, moved] = answers.map(({ status }) => status)
      expect(deleted).toBe(204)
      expect([201, 400, 404]).toContain(created)
      for (const status of [same, moved]) expect([200, 400, 404]).toContain(status)
      const { data } = await read(SCHEDULES)
      expect(data.filter(({ target }: Json) => target.name === 'session_message')).toEqual([])
    }
  })

  it('may become another session, where the name that an agent gave means nothing', async () => {
    const [one, two] = [await createSession(api), await createSession(api)]
    const paths: string[] = []
    for (const session_id of [one, two]) {
      paths.push(await addSchedule({ target: message({ session_id, message: 'Hi' }) }))
      await api.query(`UPDATE schedules SET tool_name = 'daily' WHERE id = $1`, [uuidOf(paths.at(-1) ?? '')])
    }
    const toolNames = () => Promise.all(paths.map(async (path) => (await rowOf(path)).tool_name))
    const moveTo = (session_id: string) => patch(paths[0] ?? '', { target: message({ session_id, message: 'Bye' }) })
    expect((await moveTo(one)).status).toBe(200)
    expect(await toolNames()).toEqual(['daily', 'daily'])
    expect((await moveTo(two)).status).toBe(200)
    expect(await toolNames()).toEqual([null, 'daily'])
  })

  it('keeps the values of its headers encrypted, and no answer has them', async () => {
    const path = await addSchedule({ target: request({ headers: { 'X-A': HEADER, 'X-B': 'sk-of-a-test' } }) })
    const { target_headers: bytes, ...plain } = await rowOf(path)
    expect([bytes.includes(HEADER), JSON.stringify(plain).includes(HEADER)]).toEqual([false, false])
    const answers = [await read(path), await read(SCHEDULES), (await patch(path, { description: 'New' })).body]
    expect(JSON.stringify(answers)).not.toMatch(/sk-|text-of-a-test/)
    expect((await rowOf(await addSchedule({ target: request({}) }))).target_headers).toBeNull()
  })

  it.each<[given: object, names: string[]]>([
    [{ headers: { 'X-A': '***', 'X-B': '***' } }, ['X-A', 'X-B']],
    [{ url: 'https://hooks.example/other', headers: { 'x-b': '***', 'X-C': 'new' } }, ['x-b', 'X-C']],
    [{ headers: { 'X-A': 'new' } }, ['X-A']],
    [{}, []],
  ])('keeps, replaces and removes headers by PATCH with %j', async (given, names) => {
    const path = await addSchedule({ target: request({ headers: { 'X-A': 'one', 'X-B': 'two' } }) })
    const { body } = await patch(path, { target: request(given) })
    const shown = Object.fromEntries(names.map((name) => [name, '***']))
    expect(body.target.input.headers).toEqual(shown)
    expect((await patch(path, { target: request({ ...given, headers: shown }) })).status).toBe(200)
    expect((await rowOf(path)).target_headers === null).toBe(names.length === 0)
  })

  it.each(['https://other.example/', 'https://hooks.example:444/', 'http://hooks.example/'])(
    'does not send kept headers to %s',
    async (url) => {
      const path = await addSchedule({ target: request({ headers: { 'X-A': 'one' } }) })
      const moved = await patch(path, { target: request({ url, headers: { 'X-A': '***' } }) })
      expectError(moved, 400, /^target\.input\.headers: are needed with a change of the server/)
      expect((await patch(path, { target: request({ url, headers: { 'X-A': 'two' } }) })).status).toBe(200)
    },
  )

  it('cannot keep headers that it has not, or that are damaged', async () => {
    const kept = { target: request({ headers: { 'X-A': '***' } }) }
    const path = await addSchedule()
    expectError(await patch(path, kept), 400, /^target\.input\.headers: \*\*\* stands for .*X-A has none/)
    await patch(path, { target: request({ headers: { 'X-A': 'one' } }) })
    await api.query(
      'UPDATE schedules SET target_headers = set_byte(target_headers, 40, 1 # get_byte(target_headers, 40)) WHERE id = $1',
      [uuidOf(path)],
    )
    expect((await read(path)).target.input.headers).toEqual({ 'X-A': '***' })
    expectError(await patch(path, kept), 409, /^The stored headers of the schedule are damaged/)
    expect((await patch(path, { target: request({ headers: { 'X-A': 'two' } }) })).status).toBe(200)
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
    expect(await read(path)).toMatchObject({ ...expected, name: before.name, target: { name: 'http_request' } })
  })

  it.each<[change: object, isNews: boolean]>([
    [{ description: 'New' }, false],
    [{ target: request({}) }, false],
    [{ max_concurrent: 1, catch_up_missed: true, max_catch_up: 1, retry_policy: {} }, false],
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

  it('that pauses or resumes is made once, and keeps the reason', async () => {
    const path = await addSchedule()
    const steps = [
      ['pause', false, 'paused by the API', 2],
      ['pause', false, 'paused by the API', 2],
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
    const common = { schedule_id: uuidOf(path), task_id: null, error: null }
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
