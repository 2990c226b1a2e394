import { call, expectError, type Json, modelId, unknownId } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const agent = (more: object = {}) => ({ name: 'Ada', system_prompt: 'Help.', ...more })
const create = (body: unknown) => call(api, 'POST', '/v1/agents', body)
const tool = (index: number, more: object = {}) => ({
  type: 'client_side',
  name: `tool_${index}`,
  description: 'Does it.',
  parameters: { type: 'object' },
  ...more,
})

describe('creating an agent', () => {
  it('answers 201 with every field, those left out at their defaults', async () => {
    const { status, body } = await create(agent())
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^agent_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/),
      harness_id: 'harness_01933b5a000070008000000000000601',
      name: 'Ada',
      description: null,
      system_prompt: 'Help.',
      default_model_id: null,
      tags: [],
      capabilities: [],
      tools: [],
      limits: {},
      output_schema: null,
      version: 1,
      status: 'active',
      usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_creation_tokens: 0 },
      cost_usd: '0',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: body.created_at,
    })
  })

  it('keeps what it is given', async () => {
    const given = agent({
      description: 'A “quoted” description\nwith 🦉',
      default_model_id: await modelId(api, 'llmsim-echo'),
      tags: ['a', 'b'],
      tools: [
        tool(1, { parameters: { type: 'object', properties: { $type: { type: 'null' } } }, display_name: 'One' }),
      ],
    })
    const { body } = await create(given)
    expect(body).toMatchObject(given)
    expect((await call(api, 'GET', `/v1/agents/${body.id}`)).body).toEqual(body)
  })

  it('takes capabilities that are there and that are coming soon, with what is configured for them', async () => {
    const capabilities = [
      { ref: 'test_math', config: { any: ['thing'] } },
      { ref: 'research' },
      { ref: 'noop', config: null },
    ]
    const { status, body } = await create(agent({ capabilities }))
    expect([status, body.capabilities]).toEqual([201, capabilities])
  })

  it('ignores fields it does not know', async () => {
    const { status, body } = await create(agent({ colour: 'green' }))
    expect(status).toBe(201)
    expect(body).not.toHaveProperty('colour')
  })

  it('takes null for what may be left out', async () => {
    const { status } = await create(agent({ id: null, description: null, default_model_id: null }))
    expect(status).toBe(201)
  })

  it('uses a given unused id, and updates the agent when it is given again', async () => {
    const id = `agent_${'0'.repeat(31)}8`
    const first = await create(agent({ id, description: 'old', tags: ['x'] }))
    expect([first.status, first.body.id]).toEqual([201, id])
    const second = await create(agent({ id, name: 'Grace' }))
    expect(second.status).toBe(200)
    expect(second.body).toMatchObject({
      id,
      name: 'Grace',
      description: null,
      tags: [],
      created_at: first.body.created_at,
    })
    expect((await call(api, 'GET', `/v1/agents/${id}`)).body).toEqual(second.body)
  })

  it('makes one agent of two requests with one id at the same time', async () => {
    const id = `agent_${'0'.repeat(31)}7`
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => create(agent({ id, name: `Twin ${index}` }))),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(11).fill(200), 201])
    const { body } = await call(api, 'GET', '/v1/agents?search=twin')
    expect(body.data).toHaveLength(1)
  })

  it.each<[string, unknown, RegExp]>([
    ['no name', { system_prompt: 'x' }, /^name: /],
    ['an empty name', agent({ name: ' ' }), /^name: must not be empty/],
    ['no system_prompt', { name: 'x' }, /^system_prompt: /],
    ['a number for a name', agent({ name: 1 }), /^name: .*string/],
    ['an id in upper case', agent({ id: unknownId('agent').toUpperCase() }), /^id: must be agent_/],
    ['an id of another kind', agent({ id: unknownId('session') }), /^id: must be agent_/],
    ['a tag that is a number', agent({ tags: ['a', 2] }), /^tags\.1: .*string/],
    ['tags that are a string', agent({ tags: 'a' }), /^tags: .*array/],
    [
      'an unknown model',
      agent({ default_model_id: unknownId('model') }),
      /^default_model_id: there is no model model_/,
    ],
    [
      'a capability that does not exist',
      agent({ capabilities: [{ ref: 'noop' }, { ref: 'flying' }] }),
      /^capabilities: there is no capability "flying"; GET \/v1\/capabilities lists them$/,
    ],
    [
      'a tool whose parameters are not a JSON Schema',
      agent({ tools: [tool(1), tool(2, { parameters: { properties: { a: { type: 'text' } } } })] }),
      /^tools\.1\.parameters: must be a JSON Schema .*properties\.a\.type/,
    ],
    [
      'a tool whose parameters describe a list',
      agent({ tools: [tool(1, { type: 'builtin', parameters: { type: 'array' } })] }),
      /^tools\.0\.parameters: type must be "object"/,
    ],
    [
      'a tool with a pattern that cannot be used',
      agent({ tools: [tool(1, { parameters: { properties: { a: { pattern: '(b' } } } })] }),
      /^tools\.0\.parameters: must be a JSON Schema .*Invalid regular expression: \/\(b\//,
    ],
    ['a tool of an unknown type', agent({ tools: [tool(1, { type: 'magic' })] }), /^tools\.0\.type: .*client_side/],
    [
      'a tool with a space in its name',
      agent({ tools: [tool(1, { name: 'a b' })] }),
      /^tools\.0\.name: must be 1 to 64/,
    ],
    ['two tools of one name', agent({ tools: [tool(1), tool(1)] }), /^tools: .*two tools of one name/],
    ['a list', [agent()], /^The request body: .*object/],
  ])('refuses %s', async (_, body, sentence) => {
    expectError(await create(body), 400, sentence)
  })

  it.each<[string, (length: number) => object, number]>([
    ['name', (length) => agent({ name: 'n'.repeat(length) }), 2048],
    ['description', (length) => agent({ description: 'd'.repeat(length) }), 10 * 1024],
    ['system_prompt', (length) => agent({ system_prompt: 's'.repeat(length) }), 1024 * 1024],
    ['tools', (length) => agent({ tools: Array.from({ length }, (_, index) => tool(index)) }), 50],
    ['tools.0.name', (length) => agent({ tools: [tool(1, { name: 'n'.repeat(length) })] }), 64],
    ['tools.0.description', (length) => agent({ tools: [tool(1, { description: 'd'.repeat(length) })] }), 1024],
  ])('takes %s at its limit and refuses one more', async (field, body, limit) => {
    expect((await create(body(limit))).status).toBe(201)
    expectError(await create(body(limit + 1)), 400, new RegExp(`^${field}: must .*${limit}`))
  })

  it('counts a text limit in bytes', async () => {
    expect((await create(agent({ name: 'é'.repeat(1024) }))).status).toBe(201)
    expectError(await create(agent({ name: 'é'.repeat(1025) })), 400, /^name: must be at most 2048 bytes/)
  })

  it('refuses the 251st capability', async () => {
    const capabilities = (length: number) =>
      agent({ capabilities: Array.from({ length }, () => ({ ref: 'none_such' })) })
    expectError(await create(capabilities(251)), 400, 'at most 250 capabilities')
    expectError(await create(capabilities(250)), 400, 'none_such')
  })

  it.each([
    ['not JSON', 'oops', /^system_prompt: .*not JSON/],
    ['with a wrong second step', '[{"text":"a"},{"text":5}]', /^system_prompt: .*step 2 .*text/],
    ['with an unknown field', '[{"txet":"a"}]', /^system_prompt: .*step 1 .*txet/],
  ])('refuses an llmsim script %s', async (_, script, sentence) => {
    expectError(await create(agent({ system_prompt: `Play:\n\`\`\`llmsim\n${script}\n\`\`\`` })), 400, sentence)
  })
})

describe('getting an agent', () => {
  it('answers 404 for an agent that does not exist', async () => {
    expectError(await call(api, 'GET', `/v1/agents/${unknownId('agent')}`), 404, 'Agent not found')
  })

  it.each([
    ['of another kind', unknownId('session')],
    ['in upper case', `agent_${'A'.repeat(32)}`],
    ['too short', 'agent_0193'],
    ['too long', `${unknownId('agent')}0`],
    ['with dashes', 'agent_0193aaaa-bbbb-7ccc-8ddd-0123456789ab'],
    ['without a prefix', unknownId('agent').slice(6)],
    ['with a line break', `${unknownId('agent')}%0A`],
  ])('refuses an id %s', async (_, id) => {
    expectError(await call(api, 'GET', `/v1/agents/${id}`), 400, 'agent_id: must be agent_ followed by 32')
  })
})

describe('listing agents', () => {
  const names = (body: Json): string[] => body.data.map((item: Json) => item.name)
  const search = (text: string) => call(api, 'GET', `/v1/agents?search=${encodeURIComponent(text)}`)

  it('has the newest first', async () => {
    for (const name of ['zulu', 'alpha', 'mike']) await create(agent({ name: `order ${name}` }))
    const { status, body } = await call(api, 'GET', '/v1/agents')
    expect(status).toBe(200)
    expect(names(body).filter((name) => name.startsWith('order'))).toEqual(['order mike', 'order alpha', 'order zulu'])
  })

  it('leaves archived agents out, which can still be fetched', async () => {
    const { body } = await create(agent({ name: 'gone for good' }))
    const id = body.id.replace('agent_', '')
    await api.query("UPDATE agents SET status = 'archived' WHERE id = $1::uuid", [id])
    expect(names((await search('gone for good')).body)).toEqual([])
    expect(names((await call(api, 'GET', '/v1/agents?status=archived&search=gone')).body)).toEqual(['gone for good'])
    expect(names((await call(api, 'GET', '/v1/agents?status=active&search=gone')).body)).toEqual([])
    expect((await call(api, 'GET', `/v1/agents/${body.id}`)).body.status).toBe('archived')
  })

  it('finds name or description in any case, with nothing special about %, _ and backslash', async () => {
    await create(agent({ name: 'Findling ÄX', description: 'nothing' }))
    await create(agent({ name: 'other', description: 'a FINDLING too' }))
    await create(agent({ name: '100% sure_thing \\o/' }))
    await create(agent({ name: '100 surely thing' }))
    expect(names((await search('findling')).body)).toEqual(['other', 'Findling ÄX'])
    expect(names((await search('FINDLING äx')).body)).toEqual(['Findling ÄX'])
    expect(names((await search('100%')).body)).toEqual(['100% sure_thing \\o/'])
    expect(names((await search('sure_')).body)).toEqual(['100% sure_thing \\o/'])
    expect(names((await search('\\o')).body)).toEqual(['100% sure_thing \\o/'])
    expect(names((await search('no such agent')).body)).toEqual([])
  })

  it('shows what lists need without prompts, in pages and by ids', async () => {
    const made = []
    for (const name of ['first', 'second', 'third']) {
      const given = agent({
        name: `slim ${name}`,
        description: 'd'.repeat(500),
        tags: ['slim'],
        capabilities: ['test_math'],
      })
      made.push((await create(given)).body)
    }
    const [first, second, third] = made
    await call(api, 'DELETE', `/v1/agents/${second.id}`)
    const slim = (query: string) => call(api, 'GET', `/v1/agents/summaries?${query}`)
    const { id, name, default_model_id, tags, status, version, created_at, updated_at } = third
    const summary = { id, name, default_model_id, tags, status, version, created_at, updated_at }
    const whole = await slim('search=slim')
    expect(names(whole.body)).toEqual(['slim third', 'slim first'])
    expect(whole.body.data[0]).toEqual({ ...summary, description: 'd'.repeat(300) })
    expect(names((await slim('search=slim&limit=1&offset=1')).body)).toEqual(['slim first'])
    expect(names((await slim('search=slim&status=archived')).body)).toEqual(['slim second'])
    expect(names((await slim(`id=${second.id}&id=${first.id}&id=${unknownId('agent')}`)).body)).toEqual([
      'slim second',
      'slim first',
    ])
    const elsewhere = await newOrganization()
    expect((await call(elsewhere, 'GET', `/v1/agents/summaries?id=${first.id}`)).body.data).toEqual([])
    expectError(await slim('id=agent_1'), 400, /^id/)
    expectError(await slim('limit=0'), 400, /^limit: /)
  })

  it('takes a search of 200 bytes but no longer', async () => {
    expect((await search('s'.repeat(200))).status).toBe(200)
    expectError(await search('s'.repeat(201)), 400, /^search: must be at most 200 bytes/)
  })

  it('refuses a search that no text can match', async () => {
    expectError(await call(api, 'GET', '/v1/agents?search=a%00b'), 400, /^search: .*NUL/)
    expectError(await call(api, 'GET', '/v1/agents?search=a&search=b'), 400, /^search: /)
    expectError(await call(api, 'GET', '/v1/agents?status=gone'), 400, /^status: /)
  })
})
