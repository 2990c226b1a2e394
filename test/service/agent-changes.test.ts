import { hash } from 'node:crypto'
import { newUuid, toId } from '../../domain/kit/ids.ts'
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
import { toUuid } from '../support/ids.ts'
import { addNamed } from '../support/named.ts'
import { countRows, newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const ask = (method: string, path: string, body?: unknown) => call(api, method, `/v1/agents${path}`, body)
const get = async (id: string): Promise<Json> => (await ask('GET', `/${id}`)).body
const tool = (name: string) => ({ type: 'client_side', name, description: 'Does it.', parameters: { type: 'object' } })
const full = async () => ({
  name: 'Ada',
  description: 'Counts.',
  system_prompt: 'Help.',
  default_model_id: await modelId(api, 'llmsim-echo'),
  tags: ['a', 'b'],
  capabilities: [{ ref: 'test_math', config: { digits: 3 } }, { ref: 'noop' }],
  tools: [tool('ask')],
})
const create = async (more: object = {}): Promise<Json> => (await ask('POST', '', { ...(await full()), ...more })).body
const newId = () => toId('agent', newUuid())

describe('PUT', () => {
  it('creates an agent with the id of the path', async () => {
    const id = newId()
    const { status, body } = await ask('PUT', `/${id}`, await full())
    expect([status, body]).toEqual([201, await get(id)])
    expect(body).toMatchObject({ id, ...(await full()), status: 'active' })
  })

  it.each([[{}], [{ capabilities: [] }]])('replaces every field but capabilities that are %j', async (capabilities) => {
    const { id, created_at } = await create()
    const { status, body } = await ask('PUT', `/${id}`, { name: 'Grace', system_prompt: 'Other.', ...capabilities })
    expect([status, body]).toEqual([200, await get(id)])
    expect(body).toMatchObject({ id, name: 'Grace', system_prompt: 'Other.', created_at, status: 'active' })
    expect([body.description, body.default_model_id, body.tags, body.tools]).toEqual([null, null, [], []])
    expect(body.capabilities).toEqual((await full()).capabilities)
  })

  it('replaces capabilities that are given', async () => {
    const { id } = await create()
    const { body } = await ask('PUT', `/${id}`, { ...(await full()), capabilities: [{ ref: 'current_time' }] })
    expect(body.capabilities).toEqual([{ ref: 'current_time' }])
  })

  it('keeps the order of what is given', async () => {
    const id = newId()
    const properties = { zebra: { type: 'string' }, ant: { type: 'number' }, bee: { enum: ['b', 'a'] } }
    const tools = [{ ...tool('ask'), parameters: { type: 'object', required: ['zebra'], properties } }]
    const { body } = await ask('PUT', `/${id}`, { ...(await full()), tools })
    expect(JSON.stringify(body.tools[0].parameters)).toBe(JSON.stringify(tools[0]?.parameters))
  })

  it('takes the id of the path in the body too, and no other', async () => {
    const id = newId()
    expect((await ask('PUT', `/${id}`, { ...(await full()), id })).status).toBe(201)
    expectError(await ask('PUT', `/${id}`, { ...(await full()), id: newId() }), 400, /^id: must be the one in the path/)
  })

  it('leaves an archived agent archived', async () => {
    const { id } = await create()
    await ask('DELETE', `/${id}`)
    expect((await ask('PUT', `/${id}`, await full())).body.status).toBe('archived')
  })

  it.each<[string, object, RegExp]>([
    ['no name', { name: undefined }, /^name: /],
    ['a model that does not exist', { default_model_id: unknownId('model') }, /^default_model_id: there is no model/],
    ['a capability that does not exist', { capabilities: [{ ref: 'flying' }] }, /no capability "flying"/],
    ['half a surrogate pair', { description: 'a\ud800' }, /^description: must be well-formed Unicode/],
    ['a NUL', { tags: ['a\0'] }, /^tags\.0: must not contain a NUL/],
  ])('refuses %s, and nothing is changed', async (_, more, sentence) => {
    const { id } = await create()
    expectError(await ask('PUT', `/${id}`, { ...(await full()), name: 'Other', ...more }), 400, sentence)
    expect((await get(id)).name).toBe('Ada')
  })
})

describe('a model, a server and a skill that an agent names and that have been deleted', () => {
  const math = { ref: 'test_math' }

  it('are shown as missing, and kept when the answer is sent back unchanged', async () => {
    const named = await addNamed(api)
    const [, server] = [math, ...named.capabilities]
    const given = { default_model_id: named.model, capabilities: [math, ...named.capabilities] }
    const before = await create(given)
    expect(before).toMatchObject(given)
    expect(before.missing_model).toBeUndefined()
    await named.remove()
    const shown = { ...before, missing_model: true, capabilities: [math, ...named.missing] }
    const written = { ...shown, updated_at: expect.any(String) }
    expect(await get(before.id)).toEqual(shown)
    expect((await ask('GET', '?search=Ada')).body.data).toContainEqual(shown)
    expect(await ask('PUT', `/${before.id}`, shown)).toMatchObject({ status: 200, body: written })
    expect(await ask('POST', '', shown)).toMatchObject({ status: 200, body: written })
    expect(await ask('PATCH', `/${before.id}`, { capabilities: shown.capabilities })).toMatchObject({ body: written })
    expect((await ask('POST', `/${before.id}/copy`)).body).toMatchObject({ missing_model: true })
    expect((await api.query('SELECT capabilities FROM agents WHERE id = $1', [toUuid(before.id)]))[0]).toEqual({
      capabilities: given.capabilities,
    })
    const fewer = await ask('PATCH', `/${before.id}`, { default_model_id: '', capabilities: [server] })
    expect(fewer.body).toMatchObject({ default_model_id: null, capabilities: [{ ...server, missing: true }] })
    expect(fewer.body.missing_model).toBeUndefined()
    expectError(await ask('PUT', `/${before.id}`, shown), 400, /^default_model_id: there is no model/)
  })

  it('are refused where an agent has not named them', async () => {
    const named = await addNamed(api)
    await named.remove()
    const { id } = await create()
    for (const capability of named.missing) {
      expectError(await ask('PATCH', `/${id}`, { capabilities: [capability] }), 400, capability.ref)
    }
    const model = { ...(await full()), default_model_id: named.model, missing_model: true }
    expectError(await ask('PUT', `/${id}`, model), 400, /^default_model_id: there is no model/)
    expectError(await ask('POST', '', model), 400, /^default_model_id: there is no model/)
  })
})

describe('PATCH', () => {
  it.each<[string, object]>([
    ['name', { name: 'Grace' }],
    ['description', { description: '' }],
    ['system_prompt', { system_prompt: 'Other.' }],
    ['tags', { tags: [] }],
    ['capabilities', { capabilities: [] }],
    ['tools', { tools: [tool('other')] }],
    ['status', { status: 'archived' }],
    ['nothing', {}],
    ['the model that it takes away', { default_model_id: '' }],
  ])('changes %s and nothing else', async (_, change) => {
    const before = await create()
    const { status, body } = await ask('PATCH', `/${before.id}`, change)
    const cleared = 'default_model_id' in change ? { default_model_id: null } : {}
    // A version does not include the status.
    const version = 'status' in change || Object.keys(change).length === 0 ? 1 : 2
    expect([status, body]).toEqual([200, { ...before, ...change, ...cleared, version, updated_at: body.updated_at }])
    expect(await get(before.id)).toEqual(body)
  })

  it('takes null as not given', async () => {
    const before = await create()
    const nothing = Object.fromEntries([...Object.keys(await full()), 'status'].map((field) => [field, null]))
    const { status, body } = await ask('PATCH', `/${before.id}`, nothing)
    expect([status, body]).toEqual([200, { ...before, updated_at: body.updated_at }])
  })

  it.each<[string, (length: number) => object, number]>([
    ['name', (length) => ({ name: 'n'.repeat(length) }), 2048],
    ['description', (length) => ({ description: 'd'.repeat(length) }), 10 * 1024],
    ['system_prompt', (length) => ({ system_prompt: 's'.repeat(length) }), 1024 * 1024],
    ['capabilities', (length) => ({ capabilities: Array(length).fill({ ref: 'noop' }) }), 250],
    ['capabilities', (length) => ({ capabilities: [{ ref: 'noop', config: 'c'.repeat(length - 28) }] }), 256 * 1024],
    ['tools', (length) => ({ tools: Array.from({ length }, (_, index) => tool(`t${index}`)) }), 50],
    [
      'tools.0.parameters',
      (length) => ({ tools: [{ ...tool('a'), parameters: { d: 'x'.repeat(length - 8) } }] }),
      10240,
    ],
    ['tags', (length) => ({ tags: Array(length).fill('t') }), 100],
    ['tags.0', (length) => ({ tags: ['t'.repeat(length)] }), 256],
  ])('takes %s at its limit and refuses one more', async (field, change, limit) => {
    const { id } = await create()
    expect((await ask('PATCH', `/${id}`, change(limit))).status).toBe(200)
    expectError(await ask('PATCH', `/${id}`, change(limit + 1)), 400, new RegExp(`^${field}: .*${limit}`))
  })

  it.each<[string, unknown, RegExp]>([
    ['an empty name', { name: '  ' }, /^name: must not be empty/],
    ['an unknown status', { status: 'deleted' }, /^status: .*active/],
    ['a model that does not exist', { default_model_id: unknownId('model') }, /^default_model_id: there is no model/],
    ['a malformed script', { system_prompt: '```llmsim\noops\n```' }, /^system_prompt: .*not JSON/],
    ['a list', [], /^The request body: .*object/],
  ])('refuses %s, and nothing is changed', async (_, change, sentence) => {
    const before = await create()
    expectError(await ask('PATCH', `/${before.id}`, change), 400, sentence)
    expect(await get(before.id)).toEqual(before)
  })

  it('loses none of many concurrent changes', async () => {
    const { id } = await create()
    const changes = [
      { name: 'New' },
      { description: 'New.' },
      { system_prompt: 'New.' },
      { tags: ['new'] },
      { capabilities: [{ ref: 'current_time' }] },
      { tools: [tool('new')] },
      { status: 'archived' },
    ]
    await Promise.all(changes.map((change) => ask('PATCH', `/${id}`, change)))
    expect(await get(id)).toMatchObject(Object.assign({}, ...changes))
  })

  it('and PUT at the same time leave one of the two states', async () => {
    const replaced = { name: 'Put', description: null, system_prompt: 'Put.', tags: ['put'], tools: [] }
    for (let round = 0; round < 20; round++) {
      const { id } = await create()
      await Promise.all([
        ask('PUT', `/${id}`, { name: 'Put', system_prompt: 'Put.', tags: ['put'] }),
        ask('PATCH', `/${id}`, { name: 'Patch', description: 'Patch.' }),
      ])
      const { name, description, system_prompt, tags, tools } = await get(id)
      const patchedLast = { ...replaced, name: 'Patch', description: 'Patch.' }
      expect([replaced, patchedLast]).toContainEqual({ name, description, system_prompt, tags, tools })
    }
  })
})

describe('DELETE', () => {
  it('archives: the list has the agent no more, it can be fetched, and PATCH brings it back', async () => {
    const { id } = await create({ name: 'Archived one' })
    const listed = async () => (await ask('GET', '?search=archived%20one')).body.data.map(({ id }: Json) => id)
    expect(await listed()).toEqual([id])
    for (const _ of [1, 2]) expect(await ask('DELETE', `/${id}`)).toMatchObject({ status: 204, body: '' })
    expect(await listed()).toEqual([])
    expect((await get(id)).status).toBe('archived')
    await ask('PATCH', `/${id}`, { status: 'active' })
    expect(await listed()).toEqual([id])
  })

  it('lets sessions go on, and no new one begin', async () => {
    const session = await createSession(api, { system_prompt: 'Help.' })
    const { agent_id } = (await call(api, 'GET', `/v1/sessions/${session}`)).body
    await ask('DELETE', `/${agent_id}`)
    await call(api, 'POST', `/v1/sessions/${session}/messages`, textMessage('Still there?'))
    await waitUntilIdle(api, session)
    expectError(await call(api, 'POST', '/v1/sessions', { agent_id }), 400, /^agent_id: .* is archived; PATCH/)
  })
})

describe('copying', () => {
  it('makes an active agent with the same fields and another name', async () => {
    const original = await create()
    await ask('DELETE', `/${original.id}`)
    const { status, body } = await ask('POST', `/${original.id}/copy`)
    const { id, created_at, updated_at, ...fields } = body
    expect([status, id === original.id]).toEqual([201, false])
    expect({ ...original, id, created_at, updated_at, name: 'Ada (copy)', status: 'active' }).toEqual({
      id,
      created_at,
      updated_at,
      ...fields,
    })
  })

  it('cuts a name that would become too long, between characters', async () => {
    const { id } = await create({ name: '🦉'.repeat(512) })
    const { body } = await ask('POST', `/${id}/copy`)
    expect(body.name).toBe(`${'🦉'.repeat(510)} (copy)`)
  })
})

describe('previewing', () => {
  it('shows the prompt and every tool that a model would be given, and stores nothing', async () => {
    const before = await countRows(api, 'agents')
    const { status, body } = await ask('POST', '/preview', {
      system_prompt: 'Base.',
      capabilities: [{ ref: 'stateless_todo_list' }, { ref: 'test_math' }],
      tools: [tool('ask'), { ...tool('add'), type: 'builtin', policy: 'requires_approval' }],
    })
    expect(status).toBe(200)
    expect(body.system_prompt).toMatch(
      /^<capability id="stateless_todo_list">\n.*<system-prompt>\nBase\.\n<\/system-prompt>$/s,
    )
    expect(body.tools.map(({ type, name, policy }: Json) => [type, name, policy])).toEqual([
      ['builtin', 'write_todos', 'auto'],
      ['builtin', 'add', 'requires_approval'],
      ['builtin', 'subtract', 'auto'],
      ['builtin', 'multiply', 'auto'],
      ['builtin', 'divide', 'auto'],
      ['client_side', 'ask', undefined],
    ])
    expect(body.tools[1].parameters.properties).toHaveProperty('a')
    expect(await countRows(api, 'agents')).toBe(before)
  })

  it('of a prompt alone is the prompt', async () => {
    expect((await ask('POST', '/preview', { system_prompt: 'Base.' })).body).toEqual({
      system_prompt: 'Base.',
      system_prompt_sha256: hash('sha256', 'Base.'),
      tools: [],
    })
  })

  it.each<[string, object, RegExp]>([
    ['no prompt', {}, /^system_prompt: /],
    ['a capability that does not exist', { system_prompt: '', capabilities: [{ ref: 'x' }] }, /no capability "x"/],
  ])('refuses %s', async (_, body, sentence) => {
    expectError(await ask('POST', '/preview', body), 400, sentence)
  })
})

describe('an agent of another organization', () => {
  it('is invisible to others, and its id does not conflict', async () => {
    const others = await newOrganization()
    const id = newId()
    const row = await call(others, 'PUT', `/v1/agents/${id}`, { name: 'Theirs', system_prompt: 'Secret.' })
    expect(row.status).toBe(201)
    for (const [method, path, body] of [
      ['GET', `/${id}`],
      ['PATCH', `/${id}`, { name: 'Ours' }],
      ['DELETE', `/${id}`],
      ['POST', `/${id}/copy`],
      ['GET', `/${id}/export`],
    ] as const) {
      const missing = await ask(method, path.replace(id, unknownId('agent')), body)
      const theirs = await ask(method, path, body)
      expectError(theirs, 404, 'Agent not found')
      expect(theirs.body).toEqual(missing.body)
    }
    expectError(await call(api, 'POST', '/v1/sessions', { agent_id: id }), 400, /^agent_id: there is no agent/)
    expect((await ask('GET', '?search=Theirs')).body.data).toEqual([])
    expect((await ask('PUT', `/${id}`, { name: 'Ours', system_prompt: 'Help.' })).status).toBe(201)
    expect((await call(others, 'GET', `/v1/agents/${id}`)).body).toEqual(row.body)
  })
})
