import type { Received } from '../../support/hostile-mcp-server.ts'
import { callOf, closeAll, endpointOf, failureOf, never, newClient, newServer } from './support.ts'

closeAll()

const MiB = 1024 * 1024
const OBJECT = { type: 'object' }

const listOf = (tools: unknown[]) => ({
  'tools/list': ({ reply }: { reply(result: unknown): void }) => reply({ tools }),
})

async function discoverTools(tools: unknown[]) {
  const server = await newServer(listOf(tools))
  return newClient().discover(endpointOf(server), never())
}

const nested = (depth: number): unknown => (depth === 0 ? {} : { properties: { a: nested(depth - 1) } })

describe('the instructions of a server', () => {
  const initialize = (instructions: unknown) => ({
    initialize: ({ params, reply }: Received) =>
      reply({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'hostile', version: '1' },
        instructions,
      }),
  })
  it('are kept with its tools, without credentials and up to 8 KiB', async () => {
    const apiKey = 'sk-very-secret-key'
    const server = await newServer(initialize(`Use ${apiKey}. ${'é'.repeat(5_000)}`))
    const { instructions = '' } = await newClient().discover(endpointOf(server, { apiKey }), never())
    expect(instructions).toMatch(/^Use \[hidden\]\. é+$/)
    expect(Buffer.byteLength(instructions)).toBeGreaterThan(8 * 1024 - 2)
    expect(Buffer.byteLength(instructions)).toBeLessThanOrEqual(8 * 1024)
  })
})

describe('a list of tools', () => {
  it('has names as the server has them, titles, descriptions and hints', async () => {
    const annotations = { readOnlyHint: true, idempotentHint: true, title: 'Read it' }
    const discovered = await discoverTools([
      { name: 'Read It/now', description: 'Reads.', inputSchema: OBJECT, annotations },
      { name: 'b', title: 'Own', inputSchema: OBJECT, annotations: { title: 'Other' }, extra: 1 },
    ])
    expect(discovered).toEqual({
      tools: [
        {
          name: 'Read It/now',
          title: 'Read it',
          description: 'Reads.',
          inputSchema: OBJECT,
          isReadOnly: true,
          isIdempotent: true,
        },
        { name: 'b', title: 'Own', description: '', inputSchema: OBJECT, isReadOnly: false, isIdempotent: false },
      ],
      leftOut: [],
      ttlMs: undefined,
      protocol: { kind: 'legacy' },
    })
  })

  it.each<[string, unknown, string]>([
    ['has no name', { inputSchema: OBJECT }, 'it has no name'],
    ['has an empty name', { name: '', inputSchema: OBJECT }, 'it has no name'],
    ['is not an object', 'tool', 'it has no name'],
    ['is null', null, 'it has no name'],
    ['has a long name', { name: 'n'.repeat(256), inputSchema: OBJECT }, 'its name is too long or no text'],
    ['has a name with NUL', { name: 'a\0', inputSchema: OBJECT }, 'its name is too long or no text'],
    ['has no schema', { name: 'a' }, 'its input schema is not an object'],
    ['has a schema that is a text', { name: 'a', inputSchema: 'object' }, 'its input schema is not an object'],
    ['has a schema of a list', { name: 'a', inputSchema: { type: 'array' } }, 'its input schema is not an object'],
    [
      'has a large schema',
      { name: 'a', inputSchema: { ...OBJECT, description: 'x'.repeat(33_000) } },
      'its input schema has more than 32 KiB of JSON or 64 levels',
    ],
    [
      'has a deep schema',
      { name: 'a', inputSchema: { ...OBJECT, not: nested(40) } },
      'its input schema has more than 32 KiB of JSON or 64 levels',
    ],
    [
      'wants arguments in headers that cannot be',
      { name: 'a', inputSchema: { ...OBJECT, properties: { a: { type: 'string', 'x-mcp-header': 'a b' } } } },
      'it wants arguments in headers (x-mcp-header) that cannot be',
    ],
    [
      'has a name that cannot be a key of JSON objects',
      { name: '__proto__', inputSchema: OBJECT },
      'its name is reserved',
    ],
    [
      'can only be run as a task',
      { name: 'a', inputSchema: OBJECT, execution: { taskSupport: 'required' } },
      'it can be called as a task only, which is not supported',
    ],
    ['has the name of another', { name: 'good', inputSchema: OBJECT }, 'another tool has the same name'],
  ])('leaves out a tool that %s', async (_, tool, reason) => {
    const { tools, leftOut } = await discoverTools([{ name: 'good', description: 'first', inputSchema: OBJECT }, tool])
    expect(tools).toMatchObject([{ name: 'good', description: 'first' }])
    expect(leftOut).toMatchObject([{ reason }])
  })

  it('may have tools with the names of what every object has, and tools that may run as tasks', async () => {
    const names = ['constructor', 'toString', 'prototype', 'hasOwnProperty']
    const execution = { taskSupport: 'optional' }
    const { tools, leftOut } = await discoverTools(names.map((name) => ({ name, inputSchema: OBJECT, execution })))
    expect([tools.map(({ name }) => name), leftOut]).toEqual([names, []])
  })

  it('cuts long descriptions and titles at a character', async () => {
    const long = `${'ä'.repeat(600)}${'x'.repeat(MiB)}`
    const { tools } = await discoverTools([
      { name: 'a', title: long, description: `a${long}`, inputSchema: OBJECT },
      { name: 'b', description: 1, inputSchema: OBJECT },
    ])
    expect(tools).toMatchObject([{ title: 'ä'.repeat(128), description: `a${'ä'.repeat(511)}` }, { description: '' }])
  })

  it('has at most 512 tools, and names 100 of those left out', async () => {
    const all = Array.from({ length: 1_000 }, (_, at) => ({ name: `tool-${at}`, inputSchema: OBJECT }))
    const { tools, leftOut } = await discoverTools(all)
    expect([tools.length, leftOut.length]).toEqual([512, 100])
    expect(leftOut[0]).toEqual({ name: 'tool-512', reason: 'a server can have 512 tools' })
  })

  it('has at most 256 KiB of tools', async () => {
    const inputSchema = { ...OBJECT, description: 'x'.repeat(30_000) }
    const { tools, leftOut } = await discoverTools([
      ...Array.from({ length: 20 }, (_, at) => ({ name: `tool-${at}`, inputSchema })),
      { name: 'small', inputSchema: OBJECT },
    ])
    expect([tools.length, tools.at(-1)?.name, leftOut.length]).toEqual([9, 'small', 12])
    expect(leftOut[0]?.reason).toMatch(/256 KiB of JSON together/)
  })

  it('is read page by page, and holds as long as the page that holds shortest', async () => {
    const server = await newServer({
      'tools/list': ({ params, reply }) => {
        const page = Number(params.cursor ?? 0)
        const nextCursor = page < 2 ? `${page + 1}` : undefined
        reply({ tools: [{ name: `tool-${page}`, inputSchema: OBJECT }], nextCursor, ttlMs: 9_000 - page })
      },
    })
    const { tools, ttlMs } = await newClient().discover(endpointOf(server), never())
    expect([tools.map(({ name }) => name), ttlMs]).toEqual([['tool-0', 'tool-1', 'tool-2'], 8_998])
  })

  it('ends after 64 pages', async () => {
    const server = await newServer({
      'tools/list': ({ params, reply }) => reply({ tools: [], nextCursor: `${Number(params.cursor ?? 0) + 1}` }),
    })
    const { leftOut } = await newClient().discover(endpointOf(server), never())
    expect(leftOut).toEqual([{ name: '', reason: 'a list is read up to page 64' }])
    expect(server.of('tools/list').length).toBe(64)
  })

  it('fails when its pages together are too large', async () => {
    const server = await newServer({
      'tools/list': ({ reply }) => reply({ tools: [], nextCursor: 'next', padding: 'x'.repeat(MiB) }),
    })
    const { message } = await failureOf(newClient().discover(endpointOf(server), never()))
    expect(message).toBe('The MCP server "Acme" listed its tools in more than 4 MiB.')
    expect(server.of('tools/list').length).toBe(4)
  })

  it.each([{ tools: 'none' }, { tools: { a: 1 } }, {}, []])('is a failure if it is malformed: %j', async (result) => {
    const server = await newServer({ 'tools/list': ({ reply }) => reply(result) })
    const { message } = await failureOf(newClient().discover(endpointOf(server), never()))
    expect(message).toMatch(/answered without a list of tools|does not answer in the protocol/)
  })

  it('is empty when the server has no tools', async () => {
    const server = await newServer({
      initialize: ({ params, reply }) =>
        reply({
          protocolVersion: params.protocolVersion,
          capabilities: {},
          serverInfo: { name: 'a', version: '1' },
        }),
    })
    expect((await newClient().discover(endpointOf(server), never())).tools).toEqual([])
    expect(server.of('tools/list')).toEqual([])
  })

  it('is read with the credentials of the endpoint, on a session that is ended', async () => {
    const server = await newServer()
    const ended = new Promise<void>((resolve) => {
      server.answers.DELETE = ({ status }) => {
        status(200)
        resolve()
      }
    })
    await newClient().discover(endpointOf(server, { apiKey: 'key', headers: { 'X-Team': 'blue' } }), never())
    await ended
    const credentials = server.received.map(({ headers }) => [headers.authorization, headers['x-team']])
    expect(credentials.every(([key, team]) => key === 'Bearer key' && team === 'blue')).toBe(true)
  })

  it('ends when its signal aborts, with its reason', async () => {
    const server = await newServer({ 'tools/list': () => {} })
    const stop = new AbortController()
    const discovering = failureOf(newClient().discover(endpointOf(server), stop.signal))
    const reason = new Error('enough')
    setTimeout(() => stop.abort(reason), 50)
    expect(await discovering).toBe(reason)
    await server.of('tools/list')[0]?.ended
  })
})

describe('what a server speaks', () => {
  it('is remembered, so that calls need not ask', async () => {
    const server = await newServer()
    const client = newClient()
    const { protocol } = await client.discover(endpointOf(server), never())
    expect(server.of('server/discover').length).toBe(1)
    await client.call(endpointOf(server, { protocol: JSON.parse(JSON.stringify(protocol)) }), callOf())
    expect(server.of('server/discover').length).toBe(1)
  })

  it.each([
    ['malformed', { kind: 'modern', discover: { hello: 1 } }],
    ['no object', 'modern'],
    ['too large', { kind: 'legacy', padding: 'x'.repeat(33 * 1024) }],
  ])('is asked again when what is remembered is %s', async (_, protocol) => {
    const server = await newServer()
    expect(await newClient().call(endpointOf(server, { protocol }), callOf())).toEqual({ value: '{}' })
    expect(server.of('server/discover').length).toBe(1)
  })
})
