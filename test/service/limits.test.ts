import { call, createScriptedSession, textMessage, waitFor } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

const KiB = 1024
const MiB = 1024 * KiB
let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

/** Makes a text of that many bytes of UTF-8, in about a third as many characters. */
const textOf = (bytes: number): string => '€'.repeat(Math.floor(bytes / 3)) + 'x'.repeat(bytes % 3)
/** Makes a value whose JSON has that many bytes, with a text in it that takes up what `value` leaves. */
const jsonOf = <T>(bytes: number, value: (text: string) => T): T =>
  value(textOf(bytes - Buffer.byteLength(JSON.stringify(value('')))))

const agent = (more: object) => ({ name: 'Ada', system_prompt: 'Help.', ...more })
const tool = (more: object) => ({ type: 'client_side', name: 'ask', description: 'Asks.', parameters: {}, ...more })
const schemaOf = (bytes: number) => jsonOf(bytes, (description) => ({ type: 'object', description }))
const capabilitiesOf = (bytes: number) => jsonOf(bytes, (note) => [{ ref: 'noop', config: { note } }])
const messageOf = (bytes: number) => [
  { type: 'text', text: textOf(1000) },
  { type: 'text', text: textOf(bytes - 1000) },
]
const tagsOf = (bytes: number) => ['a', textOf(bytes)]

type Row = [field: string, maxBytes: number, body: (bytes: number) => object]

const AGENT_FIELDS: Row[] = [
  ['name', 2 * KiB, (bytes) => agent({ name: textOf(bytes) })],
  ['description', 10 * KiB, (bytes) => agent({ description: textOf(bytes) })],
  ['system_prompt', MiB, (bytes) => agent({ system_prompt: textOf(bytes) })],
  ['tags.1', 256, (bytes) => agent({ tags: tagsOf(bytes) })],
  ['capabilities', 256 * KiB, (bytes) => agent({ capabilities: capabilitiesOf(bytes) })],
  ['tools.0.description', KiB, (bytes) => agent({ tools: [tool({ description: textOf(bytes) })] })],
  ['tools.0.display_name', 256, (bytes) => agent({ tools: [tool({ display_name: textOf(bytes) })] })],
  ['tools.0.parameters', 10 * KiB, (bytes) => agent({ tools: [tool({ parameters: schemaOf(bytes) })] })],
]
const SESSION_FIELDS: Row[] = [
  ['title', 2 * KiB, (bytes) => ({ title: textOf(bytes) })],
  ['tags.1', 256, (bytes) => ({ tags: tagsOf(bytes) })],
  ['capabilities', 256 * KiB, (bytes) => ({ capabilities: capabilitiesOf(bytes) })],
  ['tools.0.parameters', 10 * KiB, (bytes) => ({ tools: [tool({ parameters: schemaOf(bytes) })] })],
]
const MESSAGE_FIELDS: Row[] = [
  ['message.content', MiB, (bytes) => ({ message: { content: messageOf(bytes) } })],
  ['tags.1', 256, (bytes) => ({ ...textMessage('Hi'), tags: tagsOf(bytes) })],
]

/** Expects a field at its limit to be accepted, and a byte more to be refused in a sentence. */
async function expectLimit(path: string, method: string, [field, maxBytes, body]: Row, accepted: number) {
  const above = await call(api, method, path, body(maxBytes + 1))
  expect({ status: above.status, error: above.body.error }).toEqual({
    status: 400,
    error: expect.stringMatching(new RegExp(`${field.replaceAll('.', '\\.')}: must .*\\b${maxBytes} bytes`)),
  })
  const at = await call(api, method, path, body(maxBytes))
  expect({ status: at.status, error: at.body.error }).toEqual({ status: accepted })
}

describe('limits are in bytes of UTF-8', () => {
  it.each(AGENT_FIELDS)('an agent: %s has at most %i', async (...row) => {
    await expectLimit('/v1/agents', 'POST', row, 201)
    const { body } = await call(api, 'POST', '/v1/agents', agent({}))
    await expectLimit(`/v1/agents/${body.id}`, 'PATCH', row, 200)
  })

  it.each(SESSION_FIELDS)('a session: %s has at most %i', async (...row) => {
    await expectLimit('/v1/sessions', 'POST', row, 201)
    if (!['title', 'tags.1'].includes(row[0])) return
    const { body } = await call(api, 'POST', '/v1/sessions', {})
    await expectLimit(`/v1/sessions/${body.id}`, 'PATCH', row, 200)
  })

  it.each(MESSAGE_FIELDS)('a message: %s has at most %i', async (...row) => {
    const { body } = await call(api, 'POST', '/v1/sessions', {})
    await expectLimit(`/v1/sessions/${body.id}/messages`, 'POST', row, 201)
  })

  it('a result of a client tool', async () => {
    const calls = { tool_calls: [{ id: 'one', name: 'ask', arguments: {} }] }
    const id = await createScriptedSession(api, [calls, { text: 'done' }], {
      tools: [tool({ parameters: { type: 'object' } })],
    })
    await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hi'))
    const isWaiting = async () => (await call(api, 'GET', `/v1/sessions/${id}`)).body.status === 'waitingfortoolresults'
    await waitFor(isWaiting, 'the session to wait for its client')
    const results = (more: object) => ({ tool_results: [{ tool_call_id: 'one', ...more }] })
    const path = `/v1/sessions/${id}/tool-results`
    const tooLong = await call(api, 'POST', path, results({ error: textOf(100 * KiB + 1) }))
    expect(tooLong).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/tool_results\.0\.error: .*102400/) },
    })
    // An image in a client's result is part of its JSON, and counts like the rest of it.
    const image = (bytes: number) =>
      results({ result: [{ type: 'image', media_type: 'image/png', base64: 'A'.repeat(bytes) }] })
    expect(await call(api, 'POST', path, image(100 * KiB))).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/tool_results\.0\.result: must be at most 102400 bytes/) },
    })
    const result = (bytes: number) => results({ result: jsonOf(bytes, (text) => ({ text })) })
    await expectLimit(path, 'POST', ['tool_results.0.result', 100 * KiB, result], 200)
  })

  it('a search for agents', async () => {
    const search = (bytes: number) => `/v1/agents?search=${encodeURIComponent(textOf(bytes))}`
    expect((await call(api, 'GET', search(200))).status).toBe(200)
    expect(await call(api, 'GET', search(201))).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/search: .*200 bytes/) },
    })
  })

  it.each([
    ['/v1/sessions', 3 * MiB, {}],
    ['/v1/agents', 3 * MiB, agent({})],
  ])('a body for %s has at most %i', async (path, maxBytes, body) => {
    const bodyOf = (bytes: number) => jsonOf(bytes, (ignored) => ({ ...body, ignored }))
    expect((await call(api, 'POST', path, bodyOf(maxBytes))).status).toBe(201)
    expect(await call(api, 'POST', path, bodyOf(maxBytes + 1))).toMatchObject({
      status: 413,
      body: { error: expect.stringContaining(`${maxBytes}`) },
    })
  })
})

describe('limits on numbers', () => {
  const many = <T>(count: number, item: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => item(index))
  it.each<[string, string, number, string, (count: number) => object]>([
    ['/v1/agents', 'tags', 100, '100 tags', (count) => agent({ tags: many(count, String) })],
    [
      '/v1/agents',
      'tools',
      50,
      '50 tools',
      (count) => agent({ tools: many(count, (index) => tool({ name: `t${index}` })) }),
    ],
    [
      '/v1/agents',
      'capabilities',
      250,
      '250 capabilities',
      (count) => agent({ capabilities: many(count, () => ({ ref: 'noop' })) }),
    ],
    ['/v1/sessions', 'tags', 100, '100 tags', (count) => ({ tags: many(count, String) })],
    [
      '/v1/sessions/{id}/messages',
      'message.content',
      100,
      '100 parts',
      (count) => ({ message: { content: many(count, () => ({ type: 'text', text: 'a' })) } }),
    ],
    [
      '/v1/sessions/{id}/messages',
      'tags',
      100,
      '100 tags',
      (count) => ({ ...textMessage('Hi'), tags: many(count, String) }),
    ],
  ])('%s: %s, at most %i', async (path, field, most, limit, body) => {
    const { body: session } = await call(api, 'POST', '/v1/sessions', {})
    const target = path.replace('{id}', session.id)
    const at = await call(api, 'POST', target, body(most))
    expect({ status: at.status, error: at.body.error }).toEqual({ status: 201 })
    const { status, body: refused } = await call(api, 'POST', target, body(most + 1))
    expect({ status, error: refused.error }).toEqual({ status: 400, error: expect.stringContaining(`${field}: must`) })
    expect(refused.error).toContain(limit)
  })
})
