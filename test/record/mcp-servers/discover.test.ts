import type { Deps } from '../../../domain/deps.ts'
import { type Discovered, type ListedTool, McpFailure } from '../../../domain/tools/mcp/protocol/client.ts'
import { refreshTools } from '../../../domain/tools/mcp-servers/discover.ts'
import { createDiscoveries } from '../../../domain/tools/mcp-servers/discoveries.ts'
import type { McpServer, Prisma } from '../../../prisma/generated/client.ts'
import { call, expectError, type Json, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { createFakeMcp, discovered, type FakeMcp, listedTool } from '../../support/mcp-server.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
let mcp: FakeMcp
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
beforeEach(() => {
  mcp = createFakeMcp()
  deps.mcp = mcp
})
afterAll(() => service.stop())

const SERVERS = '/v1/mcp-servers'
const KEY = 'sk-this-is-a-key-of-a-test-0123456789'
const HEADER = 'text-of-a-test in a header'
const HOUR_MS = 3_600_000

const answers = (...tools: ListedTool[]) => {
  mcp.answer = async () => discovered(tools)
}
const fails = (error: Error) => {
  mcp.answer = async () => {
    throw error
  }
}

let number = 0
/** Adds a server, and waits until its tools have been read, or could not be. */
async function addServer(more: object = {}): Promise<{ path: string; id: string }> {
  const body = { name: `Server ${++number}`, url: 'https://mcp.example/', ...more }
  const added = await call(service.url, 'POST', SERVERS, body)
  expect(added.status).toBe(201)
  const id = toUuid(added.body.id)
  await waitFor(async () => (await rowOf(id)).toolsExpireAt !== null, 'the first discovery')
  return { path: `${SERVERS}/${added.body.id}`, id }
}

const rowOf = (id: string): Promise<McpServer> => deps.db.mcpServer.findFirstOrThrow({ where: { id } })
const change = (id: string, data: Prisma.McpServerUpdateManyMutationInput) =>
  deps.db.mcpServer.updateMany({ where: { id }, data })
const refresh = async (id: string) => refreshTools(deps, await rowOf(id))
const get = async (path: string) => (await call(service.url, 'GET', path)).body
const capabilityOf = async (id: string): Promise<Json> => get(`/v1/capabilities/mcp:${id}`)
const policiesOf = async (id: string) =>
  (await capabilityOf(id)).tool_definitions.map(({ name, policy }: Json) => `${name.split('__')[1]}: ${policy}`)
const msUntil = (at: Date | null) => (at?.getTime() ?? 0) - Date.now()

describe('the tools of a server', () => {
  it('are read with its credentials after it is added, and accepted as they are', async () => {
    answers(listedTool('one'), listedTool('two'))
    const { path, id } = await addServer({ api_key: KEY, headers: { 'X-Team': HEADER }, tools_policy: 'ask' })
    expect(mcp.discoveries).toMatchObject([
      { id, revision: 0, apiKey: KEY, headers: { 'X-Team': HEADER }, protocol: null },
    ])
    expect(await get(path)).toMatchObject({ tools_count: 2, tools_error: null, tools_changed_at: null })
    expect(await policiesOf(id)).toEqual(['one: auto', 'two: auto'])
    const row = await rowOf(id)
    expect(row.protocol).toEqual({ version: 'of a test' })
    expect(Math.abs(msUntil(row.toolsExpireAt) - HOUR_MS)).toBeLessThan(60_000)
  })

  it.each<[ttlMs: number, expectedMs: number]>([
    [0, HOUR_MS],
    [1, 10_000],
    [600_000, 600_000],
    [Number.MAX_SAFE_INTEGER, 24 * HOUR_MS],
  ])('hold as long as the server says, %d ms, within bounds', async (ttlMs, expectedMs) => {
    mcp.answer = async () => discovered([], { ttlMs })
    const { toolsExpireAt, toolsDiscoveredAt } = await rowOf((await addServer()).id)
    expect(Number(toolsExpireAt) - Number(toolsDiscoveredAt)).toBe(expectedMs)
  })

  it('are left out when nobody could call them, and the capability says why', async () => {
    let deep: Json = {}
    for (let level = 0; level < 1000; level++) deep = { properties: { a: deep } }
    const tools = [
      listedTool('good'),
      listedTool('typed', { inputSchema: { type: 'string' } }),
      listedTool('pointing', { inputSchema: { $ref: '#/$defs/none' } }),
      listedTool('deep', { inputSchema: { default: deep } }),
      listedTool('good', { description: 'Another one.' }),
      listedTool('odd\0', { description: 'a \ud800 b' }),
    ]
    mcp.answer = async () => discovered(tools, { leftOut: [{ name: 'huge', reason: 'it is too large' }] })
    const { path, id } = await addServer()
    expect(await get(path)).toMatchObject({ tools_count: 2, tools_error: null })
    const { description, tool_definitions } = await capabilityOf(id)
    expect(tool_definitions).toMatchObject([{ description: 'Does good.' }, { description: 'a \ufffd b' }])
    for (const part of [
      'huge (it is too large)',
      'good (the server lists two tools of this name)',
      'deep (its parameters have more than 100 levels)',
      'typed (its parameters: type must be "object" at the top)',
      'pointing (its parameters: there is no schema at the $ref "#/$defs/none")',
    ])
      expect(description).toContain(part)
  })

  it('that have changed are told until they are accepted, or are as before', async () => {
    const [one, changed, added] = [listedTool('one'), listedTool('one', { description: 'Else.' }), listedTool('new')]
    answers(one)
    const { path, id } = await addServer()
    const changedAt = async () => (await get(path)).tools_changed_at
    answers(changed, added)
    expect(await refresh(id)).toBe(true)
    const seen = await changedAt()
    expect(seen).toEqual(expect.any(String))
    expect(await policiesOf(id)).toEqual(['one: auto', 'new: auto'])
    const changedTools = async (): Promise<string[]> =>
      (await get(path)).changed_tools.map((name: string) => name.replace(/^mcp_.*__/, ''))
    expect(await changedTools()).toEqual(['new', 'one'])
    const offered = (await capabilityOf(id)).tool_definitions.map(({ name }: Json) => name)
    expect((await get(path)).changed_tools.sort()).toEqual(offered.sort())
    await call(service.url, 'PATCH', path, { tools_policy: 'ask' })
    expect(await policiesOf(id)).toEqual(['one: requires_approval', 'new: requires_approval'])
    await refresh(id)
    expect(await changedAt()).toBe(seen)
    answers(one, added)
    await refresh(id)
    expect(await policiesOf(id)).toEqual(['one: auto', 'new: requires_approval'])
    const accept = (at: string) => call(service.url, 'PATCH', path, { accept_tools_changed_at: at })
    expectError(await accept(seen), 409, /^The tools have changed again/)
    expect(await changedTools()).toEqual(['new'])
    expect((await accept(await changedAt())).body).toMatchObject({ tools_changed_at: null, changed_tools: [] })
    expect(await policiesOf(id)).toEqual(['one: auto', 'new: auto'])
    answers(one)
    await refresh(id)
    expect(await changedAt()).not.toBeNull()
    expect(await changedTools()).toEqual(['new'])
    answers(one, added)
    await refresh(id)
    expect(await changedAt()).toBeNull()
  })

  it('that have changed are told to the organization, once and by their names', async () => {
    answers(listedTool('one'), listedTool('two'))
    const { id } = await addServer({ name: 'Tickets' })
    answers(listedTool('one', { description: 'Other.' }), listedTool('three'))
    for (let time = 1; time <= 2; time++) expect(await refresh(id)).toBe(true)
    const told = await deps.db.organizationEvent.findMany({ where: { type: 'tools.changed' } })
    const data = told.map((event) => event.data as Json).filter(({ mcp_server }) => toUuid(mcp_server.id) === id)
    const names = { added: ['mcp_tickets__three'], changed: ['mcp_tickets__one'], removed: ['mcp_tickets__two'] }
    expect(data).toEqual([{ mcp_server: { id: expect.stringMatching(/^mcp_/), name: 'Tickets' }, ...names }])
  })

  it('are told apart by names that every object has, too', async () => {
    const names = ['constructor', 'toString', '__proto__']
    answers(...names.map((name) => listedTool(name)))
    const { path, id } = await addServer({ tools_policy: 'ask' })
    const policies = async (): Promise<string[]> =>
      (await capabilityOf(id)).tool_definitions.map(({ policy }: Json) => policy)
    expect(await policies()).toEqual(['auto', 'auto', 'auto'])
    await refresh(id)
    expect((await get(path)).tools_changed_at).toBeNull()
    answers(...names.map((name) => listedTool(name, { description: 'Else.' })))
    await refresh(id)
    expect((await get(path)).changed_tools).toHaveLength(3)
    expect(await policies()).toEqual(Array(3).fill('requires_approval'))
    const { tools_changed_at } = await get(path)
    expect((await capabilityOf(id)).description).toContain(`Tools changed at ${tools_changed_at};`)
    await call(service.url, 'PATCH', path, { accept_tools_changed_at: tools_changed_at })
    expect(await policies()).toEqual(['auto', 'auto', 'auto'])
  })

  it('are stored with their length, which another address forgets', async () => {
    answers(listedTool('one', { description: 'ä'.repeat(1000) }))
    const { path, id } = await addServer()
    const { tools, toolsBytes } = await rowOf(id)
    expect(toolsBytes).toBe(Buffer.byteLength(JSON.stringify(tools)))
    await call(service.url, 'PATCH', path, { status: 'disabled' })
    await call(service.url, 'PATCH', path, { url: 'https://other.example/' })
    expect((await rowOf(id)).toolsBytes).toBe(0)
  })

  it('stay when they cannot be read again, and the reason is told without secrets', async () => {
    answers(listedTool('one'))
    const { path, id } = await addServer({ api_key: KEY, headers: { 'X-Team': HEADER } })
    fails(new McpFailure(`It said: "no such key ${KEY}, nor ${HEADER}" ${'x'.repeat(1000)}`))
    expect(await refresh(id)).toBe(true)
    const { tools_count, tools_error } = await get(path)
    expect([tools_count, tools_error.length]).toEqual([1, 500])
    expect(tools_error).toMatch(/^It said: "no such key \[secret\], nor \[secret\]" x+$/)
    expect(Math.abs(msUntil((await rowOf(id)).toolsExpireAt) - 60_000)).toBeLessThan(30_000)
    fails(new Error('a mistake'))
    await refresh(id)
    expect((await get(path)).tools_error).toBe('The tools could not be read because of an error in the service')
    answers(listedTool('one'))
    await refresh(id)
    expect((await get(path)).tools_error).toBeNull()
  })

  it('are not asked for with damaged credentials, and nothing is stored where another process may have the key', async () => {
    const { path, id } = await addServer({ api_key: KEY })
    const { credentials, toolsExpireAt } = await rowOf(id)
    const bytes = Uint8Array.from(credentials ?? [])
    const asked = mcp.discoveries.length
    await change(id, { credentials: bytes.with(5, (bytes[5] ?? 0) ^ 1) })
    expect(await refresh(id)).toBe(false)
    expect(await rowOf(id)).toMatchObject({ toolsError: null, toolsExpireAt })
    await change(id, { credentials: bytes.with(40, (bytes[40] ?? 0) ^ 1) })
    expect(await refresh(id)).toBe(true)
    expect((await get(path)).tools_error).toMatch(/^The stored credentials of Server \d+ are damaged/)
    expect(mcp.discoveries).toHaveLength(asked)
  })
})

describe('a discovery', () => {
  /** Lets the next discoveries wait until they are released. */
  function hold(found: Discovered) {
    const { promise, resolve } = Promise.withResolvers<Discovered>()
    mcp.answer = () => promise
    return () => resolve(found)
  }

  it('that ends after the server was changed is not stored', async () => {
    answers(listedTool('one'))
    const { path, id } = await addServer()
    const before = await rowOf(id)
    const release = hold(discovered([listedTool('of another server')]))
    const running = refreshTools(deps, before)
    await waitFor(async () => mcp.discoveries.length === 2, 'the discovery')
    answers(listedTool('new'))
    await call(service.url, 'PATCH', path, { url: 'https://other.example/' })
    await waitFor(async () => (await rowOf(id)).tools !== null, 'the tools of the other server')
    release()
    expect(await running).toBe(false)
    expect(await policiesOf(id)).toEqual(['new: auto'])
    expect((await get(path)).tools_changed_at).toBeNull()
  })

  it('of another process that ends after the server was changed is not stored either', async () => {
    const { id } = await addServer()
    const before = await rowOf(id)
    await change(id, { revision: 1 })
    const elsewhere = { ...deps, mcpDiscoveries: createDiscoveries(deps.owners.ownerOf) }
    expect(await refreshTools(elsewhere, before)).toBe(false)
    expect(await refreshTools(elsewhere, await rowOf(id))).toBe(true)
  })

  it('that ends after a server has said that its tools change leaves them expired', async () => {
    const { id } = await addServer()
    const release = hold(discovered([listedTool('one')]))
    const running = refresh(id)
    await waitFor(async () => mcp.discoveries.length === 2, 'the discovery')
    const toolsExpireAt = new Date(Date.now() - 1)
    await change(id, { toolsExpireAt })
    release()
    expect(await running).toBe(true)
    expect((await rowOf(id)).toolsExpireAt).toEqual(toolsExpireAt)
  })

  it('of a server that is deleted, or in a process that stops, stores nothing', async () => {
    const { path, id } = await addServer()
    const row = await rowOf(id)
    await call(service.url, 'DELETE', path)
    expect(await refreshTools(deps, row)).toBe(false)
    const stopping = { ...deps, mcpDiscoveries: createDiscoveries(deps.owners.ownerOf) }
    mcp.answer = (_, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const running = refreshTools(stopping, row)
    await stopping.mcpDiscoveries.close()
    expect(await running).toBe(false)
  })
})
