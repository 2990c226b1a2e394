import {
  call,
  createSession,
  expectError,
  type Json,
  modelId,
  textMessage,
  unknownId,
  waitUntilIdle,
} from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const create = (body?: unknown, headers?: Record<string, string>) => call(api, 'POST', '/v1/sessions', body, headers)
const get = (id: string) => call(api, 'GET', `/v1/sessions/${id}`)
const list = (query: string) => call(api, 'GET', `/v1/sessions${query}`)

describe('creating a session', () => {
  it('needs no body', async () => {
    const { status, body } = await create()
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^session_[0-9a-f]{32}$/),
      organization_id: api.id,
      agent_id: null,
      agent_version: null,
      harness_id: 'harness_01933b5a000070008000000000000601',
      model_id: null,
      title: null,
      tags: [],
      capabilities: [],
      tools: [],
      approved_tools: [],
      draft_prompt: null,
      features: [],
      status: 'started',
      last_turn_status: null,
      preview: null,
      output_preview: null,
      is_pinned: false,
      snapshots: false,
      forked_from: null,
      active_schedule_count: 0,
      usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_creation_tokens: 0 },
      cost_usd: '0',
      created_at: expect.stringMatching(/Z$/),
      updated_at: body.created_at,
      started_at: null,
      finished_at: null,
    })
    expect((await get(body.id)).body).toEqual(body)
  })

  it('takes {} and an empty body with the JSON content type', async () => {
    expect((await create({})).status).toBe(201)
    expect((await create('', { 'Content-Type': 'application/json' })).status).toBe(201)
  })

  it('ignores unknown fields, and names that are null', async () => {
    expect((await create({ agent_name: null, harness_name: null, colour: 'red' })).status).toBe(201)
  })

  it('stores all given fields', async () => {
    const { body: agent } = await call(api, 'POST', '/v1/agents', { name: 'A', system_prompt: 'Help.' })
    const given = {
      agent_id: agent.id,
      harness_id: unknownId('harness'),
      model_id: await modelId(api, 'llmsim-echo'),
      title: 'Title',
      tags: ['one', 'two'],
      capabilities: [{ ref: 'current_time', config: { zone: 'UTC' } }, { ref: 'session_storage' }],
      tools: [{ type: 'builtin', name: 'kv_store', description: '', parameters: {}, policy: 'requires_approval' }],
    }
    const { status, body } = await create(given)
    expect(status).toBe(201)
    expect(body).toMatchObject(given)
  })

  it.each([
    ['an unknown agent', { agent_id: unknownId('agent') }, /^agent_id: there is no agent agent_/],
    ['the name of an agent', { agent_name: 'Ada' }, /^agent_name: is not supported; give agent_id$/],
    ['the name of a harness', { harness_name: 'Base' }, /^harness_name: is not supported; give harness_id$/],
    ['an unknown model', { model_id: unknownId('model') }, /^model_id: there is no model model_/],
    ['a malformed agent id', { agent_id: 'agent_1' }, /^agent_id: must be agent_/],
    ['a malformed harness id', { harness_id: 'h' }, /^harness_id: must be harness_/],
    ['a title that is a number', { title: 7 }, /^title: .*string/],
    ['a title over 2 KB', { title: 't'.repeat(2049) }, /^title: must be at most 2048 bytes/],
    [
      'an unknown capability',
      { capabilities: [{ ref: 'flying' }] },
      /^capabilities: there is no capability "flying"; GET \/v1\/capabilities lists them$/,
    ],
    [
      'a tool whose parameters are not a JSON Schema',
      { tools: [{ type: 'client_side', name: 'a', description: '', parameters: { required: 'x' } }] },
      /^tools\.0\.parameters: must be a JSON Schema .*required must be array/,
    ],
    ['a list', [], /^The request body: .*object/],
    ['a number', 5, /^The request body: .*object/],
  ])('refuses %s', async (_, body, sentence) => {
    expectError(await create(body), 400, sentence)
  })
})

describe('a limit of a session', () => {
  const tool = (index: number) => ({ type: 'client_side', name: `t${index}`, description: '', parameters: {} })
  it.each<[string, (length: number) => object, number]>([
    ['title', (length) => ({ title: 't'.repeat(length) }), 2048],
    ['tags', (length) => ({ tags: Array(length).fill('t') }), 100],
    ['capabilities', (length) => ({ capabilities: Array(length).fill({ ref: 'noop' }) }), 250],
    ['tools', (length) => ({ tools: Array.from({ length }, (_, index) => tool(index)) }), 50],
  ])('allows %s up to it and not one more', async (field, body, limit) => {
    expect((await create(body(limit))).status).toBe(201)
    expectError(await create(body(limit + 1)), 400, new RegExp(`^${field}: .*${limit}`))
  })
})

describe('getting a session', () => {
  it('accepts both prefixes and answers with the long one', async () => {
    const id = await createSession(api)
    expect((await get(id.replace('session_', 'sess_'))).body).toMatchObject({ id })
  })

  it('answers 404 for a session that does not exist', async () => {
    const missing = await get(unknownId('session'))
    expectError(missing, 404, 'Session not found')
    expect(missing.body.field).toBe('session_id')
    expectError(await get(unknownId('sess')), 404, 'Session not found')
  })

  it.each(['session_1', `session_${'F'.repeat(32)}`, unknownId('agent'), unknownId('ses'), 'null'])(
    'refuses %s',
    async (id) => {
      expectError(await get(id), 400, 'session_id: must be session_ followed by 32 lower-case hex digits')
    },
  )

  it('shows the effects of a turn: status, previews, usage, times', async () => {
    const id = await createSession(api, {}, { model_id: await modelId(api, 'llmsim-echo') })
    const long = '🦉'.repeat(150) + 'x'.repeat(100)
    await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage(long))
    await waitUntilIdle(api, id)
    const first = '🦉'.repeat(150) + 'x'.repeat(50)
    const { body } = await get(id)
    expect(body).toMatchObject({ status: 'idle', preview: first, output_preview: first })
    expect(body.usage.input_tokens).toBeGreaterThan(0)
    expect(body.usage.output_tokens).toBeGreaterThan(0)
    expect(body.started_at >= body.created_at && body.updated_at >= body.started_at).toBe(true)

    await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('second'))
    const after = (await get(id)).body
    expect(after).toMatchObject({ preview: first, output_preview: 'second' })
    expect(after.usage.output_tokens).toBeGreaterThan(body.usage.output_tokens)
    const agent = (await call(api, 'GET', `/v1/agents/${after.agent_id}`)).body
    expect(agent.usage).toEqual(after.usage)
  })
})

describe('listing sessions', () => {
  const titles = (body: Json): string[] => body.data.map((session: Json) => session.title)
  let agent_id: string
  beforeAll(async () => {
    const { body } = await call(api, 'POST', '/v1/agents', { name: 'Many', system_prompt: 'Help.' })
    agent_id = body.id
    for (let index = 0; index < 103; index++) await create({ agent_id, title: `${index}` })
  })

  it('has the newest first, twenty of them, and says how many there are', async () => {
    const { status, body } = await list(`?agent_id=${agent_id}`)
    expect(status).toBe(200)
    expect(titles(body)).toEqual(Array.from({ length: 20 }, (_, index) => `${102 - index}`))
    expect(body).toMatchObject({ total: 103, limit: 20, offset: 0 })
  })

  it('continues at an offset, to the end and past it', async () => {
    const { body } = await list(`?agent_id=${agent_id}&limit=5&offset=100`)
    expect(titles(body)).toEqual(['2', '1', '0'])
    expect(body).toMatchObject({ total: 103, limit: 5, offset: 100 })
    expect((await list(`?agent_id=${agent_id}&offset=103`)).body).toMatchObject({ data: [], total: 103 })
  })

  it.each(['9999999999', '999999999999999', '9'.repeat(40)])('has nothing at offset %s', async (offset) => {
    const { status, body } = await list(`?agent_id=${agent_id}&offset=${offset}`)
    expect([status, body.data, body.total]).toEqual([200, [], 103])
  })

  it('takes a larger limit as 100', async () => {
    for (const limit of ['101', '999999999999', '9'.repeat(40)]) {
      const { status, body } = await list(`?agent_id=${agent_id}&limit=${limit}`)
      expect([status, body.data.length, body.limit]).toEqual([200, 100, 100])
    }
  })

  it('lists nothing for an agent without sessions', async () => {
    expect((await list(`?agent_id=${unknownId('agent')}`)).body).toMatchObject({ data: [], total: 0 })
  })

  it.each([
    'limit=-1',
    'limit=0',
    'limit=ten',
    'limit=1.5',
    'limit=',
    'limit=1e2',
    'offset=-1',
    'offset=x',
    'limit=1&limit=2',
    'agent_id=agent_1',
  ])('refuses ?%s and names the field', async (query) => {
    expectError(await list(`?${query}`), 400, new RegExp(`^${query.split('=')[0]}: `))
  })
})
