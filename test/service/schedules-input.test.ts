import { call, createSession, expectError, type Json, textMessage, unknownId } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { HOOK, message, NOOP, request, SCHEDULES, scheduleCalls, uuidOf, YEARLY } from '../support/schedules.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeEach(async () => {
  api = await newOrganization()
})
const { add, addSchedule, read, patch, rowOf } = scheduleCalls(() => api)

const HEADER = 'text-of-a-test in a header'
const addAgent = async (): Promise<string> =>
  (await call(api, 'POST', '/v1/agents', { name: 'An agent', system_prompt: 'Help.' })).body.id

describe('schedules', () => {
  const target = (given: object) => ({ target: { ...NOOP, ...given } })
  const of = (input: unknown) => ({ target: message(input as object) })
  const bytes = (count: number) => 'x'.repeat(count)
  const manyHeaders = (count: number, value: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-${n}`, value]))
  const SESSION = unknownId('session')

  it.each<[what: string, body: object, sentence: RegExp]>([
    ['no name', { name: undefined }, /^name: /],
    ['an empty name', { name: ' ' }, /^name: must not be empty/],
    ['a long name', { name: bytes(2049) }, /^name: must be at most 2048 bytes/],
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
      'a part of an unknown type',
      of({ session_id: SESSION, message: { content: [{ type: 'sound' }] } }),
      /^target\.input\.message\.content\.0\.type: /,
    ],
    [
      'an image without bytes',
      of({ session_id: SESSION, message: { content: [{ type: 'image' }] } }),
      /^target\.input\.message\.content\.0: must have url/,
    ],
    [
      'a message of the model',
      of({ session_id: SESSION, message: { role: 'agent', content: textMessage('Hi').message.content } }),
      /^target\.input\.message\.role: must be "user"/,
    ],
    ['no receiver', of({ message: 'Hi' }), /^target\.input: must have either session_id, or agent_id/],
    [
      'two receivers',
      of({ session_id: SESSION, agent_id: unknownId('agent'), message: 'Hi' }),
      /^target\.input: must have either/,
    ],
    ['a malformed id', of({ session_id: 'mine', message: 'Hi' }), /^target\.input\.session_id: must be session_/],
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
    ['a malformed address', { target: request({ url: 'hooks' }) }, /^target\.input\.url: must be an http or https URL/],
    [
      'another protocol',
      { target: request({ url: 'ftp://a.example' }) },
      /^target\.input\.url: must be an http or https URL/,
    ],
    ['a fragment', { target: request({ url: `${HOOK}#a` }) }, /^target\.input\.url: must have no fragment/],
    ['a password', { target: request({ url: 'https://me:sk-x@a.example' }) }, /^target\.input\.url: .*password/],
    ['a private address', { target: request({ url: 'http://10.0.0.1/' }) }, /^target\.input\.url: .*not on the public/],
    ['this machine', { target: request({ url: 'http://localhost/' }) }, /^target\.input\.url: .*not on the public/],
    [
      'a long address',
      { target: request({ url: `${HOOK}${bytes(2048)}` }) },
      /^target\.input\.url: must be at most 2048/,
    ],
    ['an unknown method', { target: request({ method: 'TRACE' }) }, /^target\.input\.method: must be one of GET, HEAD/],
    [
      'a body of GET',
      { target: request({ method: 'get', body: 'x' }) },
      /^target\.input\.body: must be left out with GET/,
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
    [
      'the host',
      { target: request({ headers: { Host: 'a.example' } }) },
      /^target\.input\.headers: must not have Host, which the service sets$/,
    ],
    [
      'a length',
      { target: request({ headers: { 'content-length': '1' } }) },
      /^target\.input\.headers: must not have content-length/,
    ],
    [
      'a key of its own',
      { target: request({ headers: { 'Idempotency-Key': '1' } }) },
      /^target\.input\.headers: must not have Idempotency-Key, which the service sets$/,
    ],
    [
      'a line break in a header',
      { target: request({ headers: { 'X-A': `sk-x\nX-Evil: 1` } }) },
      /^target\.input\.headers\.X-A: must be printable/,
    ],
    [
      'a header without a name',
      { target: request({ headers: { '': 'x' } }) },
      /^target\.input\.headers.*is not a valid header name/,
    ],
    [
      'a header twice',
      { target: request({ headers: { 'X-A': '1', 'x-a': '2' } }) },
      /^target\.input\.headers: must have x-a once/,
    ],
    [
      'a mask',
      { target: request({ headers: { 'X-A': '***' } }) },
      /^target\.input\.headers: must have a value for X-A; \*\*\* keeps/,
    ],
    [
      '101 headers',
      { target: request({ headers: manyHeaders(101, 'x') }) },
      /^target\.input\.headers: must have at most 100/,
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
    const isChange = Object.values(body).every((value) => value !== undefined)
    if (!isChange) return
    const path = await addSchedule()
    const before = await read(path)
    expectError(await patch(path, body), 400, sentence)
    expect(await read(path)).toEqual(before)
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
      input: { url: HOOK, ...stored },
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

  it('that is a session takes its schedules with it, even schedules created meanwhile', async () => {
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

  it('is taken over from an agent by who changes it, also when another session has a schedule of that name', async () => {
    const [one, two] = [await createSession(api), await createSession(api)]
    const paths: string[] = []
    for (const session_id of [one, two]) {
      paths.push(await addSchedule({ target: message({ session_id, message: 'Hi' }) }))
      await api.query(`UPDATE schedules SET tool_name = 'daily' WHERE id = $1`, [uuidOf(paths.at(-1) ?? '')])
    }
    const [path = '', other = ''] = paths
    expect((await patch(path, { description: 'Checked' })).status).toBe(200)
    expect(await rowOf(path)).toMatchObject({ tool_name: 'daily' })
    expect((await patch(path, { target: message({ session_id: two, message: 'Bye' }) })).status).toBe(200)
    expect(await rowOf(path)).toMatchObject({ tool_name: null })
    expect(await rowOf(other)).toMatchObject({ tool_name: 'daily' })
  })

  it('is not a one-off any more when its times are changed', async () => {
    const path = await addSchedule()
    await api.query('UPDATE schedules SET is_one_off = true WHERE id = $1', [uuidOf(path)])
    expect((await patch(path, { cron_expression: YEARLY, timezone: 'UTC' })).status).toBe(200)
    expect(await rowOf(path)).toMatchObject({ is_one_off: true })
    expect((await patch(path, { cron_expression: '0 12 * * *' })).status).toBe(200)
    expect(await rowOf(path)).toMatchObject({ is_one_off: false })
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
      expectError(moved, 400, /^target\.input\.headers: is required with another server/)
      expect((await patch(path, { target: request({ url, headers: { 'X-A': 'two' } }) })).status).toBe(200)
    },
  )

  it('cannot keep headers that it has not, or that are damaged', async () => {
    const kept = { target: request({ headers: { 'X-A': '***' } }) }
    const path = await addSchedule()
    expectError(await patch(path, kept), 400, /^target\.input\.headers: must have a value for X-A; \*\*\* keeps/)
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
