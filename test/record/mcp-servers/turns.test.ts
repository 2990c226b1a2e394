import type { Deps } from '../../../domain/deps.ts'
import { reasonStep } from '../../../domain/events/log/steps.ts'
import { type Discovered, McpFailure } from '../../../domain/tools/mcp/protocol/client.ts'
import { refreshTools } from '../../../domain/tools/mcp-servers/discover.ts'
import { createDiscoveries, type Waits } from '../../../domain/tools/mcp-servers/discoveries.ts'
import { readServersForUse } from '../../../domain/tools/mcp-servers/read-for-use.ts'
import { slugOf } from '../../../domain/tools/mcp-servers/tool-names.ts'
import { readCapabilities } from '../../../domain/tools/registry/read.ts'
import { requestCalls, settleCalls } from '../../../domain/turns/control/client-calls.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import { readSystemPrompt } from '../../../domain/turns/run/system-prompt.ts'
import { runTool } from '../../../domain/turns/run/tool.ts'
import { loadTurn } from '../../../domain/turns/run/turn-context.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { withWorkflows } from '../../support/by-hand.ts'
import { call, createScriptedSession, type Json, listEvents, textMessage, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { createFakeMcp, discovered, type FakeMcp, listedTool, toolColumns } from '../../support/mcp-server.ts'
import { expectSoundRecord } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'

let service: TestService
let deps: Deps
let mcp: FakeMcp
beforeAll(async () => {
  service = await startService({ worker: false })
})
beforeEach(() => {
  mcp = createFakeMcp()
  service.platform.deps.mcp = mcp
  deps = withWorkflows(service.platform.deps, { startTurn: async () => {}, resumeTurn: async () => {} })
})
afterAll(() => service.stop())

const KEY = 'sk-this-is-a-key-of-a-test-0123456789'
const EXPIRED = new Date(0)
const FRESH = new Date(Date.now() + 3_600_000)

const rowOf = (id: string) => deps.db.mcpServer.findFirstOrThrow({ where: { id } })

let number = 0
/** Adds a server with these columns, and forgets that it was asked for its tools. */
async function addServer(columns: Prisma.McpServerUpdateManyMutationInput, more: object = {}) {
  const body = { name: `Server ${++number}`, url: 'https://mcp.example/', ...more }
  const added = await call(service.url, 'POST', '/v1/mcp-servers', body)
  const id = toUuid(added.body.id)
  await waitFor(async () => (await rowOf(id)).toolsExpireAt !== null, 'the first discovery')
  await deps.db.mcpServer.updateMany({ where: { id }, data: columns })
  mcp.discoveries.length = 0
  return { id, name: body.name, tool: (name: string) => `mcp_${slugOf(body.name)}__${name}` }
}

/** Creates a turn of a session that uses the servers. */
async function createTurn(
  servers: { id: string; config?: object }[],
  steps: object[] = [{ text: 'done' }],
  tools: object[] = [],
) {
  const capabilities = servers.map(({ id, config }) => ({ ref: `mcp:${id}`, ...(config && { config }) }))
  const id = await createScriptedSession(service.url, steps, { capabilities, tools })
  const session = (await call(service.url, 'GET', `/v1/sessions/${id}`)).body
  const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
  const organizationId = toUuid(session.organization_id)
  return { id, turn: { organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) } }
}

/** Lets turns wait for other times than usual. */
async function withWaits(waits: Waits, work: () => Promise<void>) {
  const before = deps.mcpDiscoveries
  const mcpDiscoveries = createDiscoveries(deps.owners.ownerOf, waits)
  deps.mcpDiscoveries = mcpDiscoveries
  await work().finally(() => mcpDiscoveries.close())
  deps.mcpDiscoveries = before
}

/** Forgets that the tools of a server have ever been read. */
const forget = (id: string) => deps.db.$executeRaw`
  UPDATE mcp_servers SET tools = NULL, accepted_tools = NULL, tools_bytes = 0, tools_discovered_at = NULL
  WHERE id = ${id}::uuid`

const attempt = { fence: 1, signal: new AbortController().signal }
const reasonOn = (turn: TurnPlace, iteration = 1, signal = attempt.signal) =>
  reason(deps, turn, iteration, { ...attempt, signal })

/** Returns the tools that the model was given last. */
async function toolsOf(id: string): Promise<string[]> {
  const events: Json[] = await listEvents(service.url, id)
  expectSoundRecord(events)
  const { tools } = events.findLast(({ type }) => type === 'llm.generation').data
  return tools.map(({ name }: Json) => name)
}

/** Returns the prompt as a model call of the turn is given it now. */
async function promptOf(turn: TurnPlace): Promise<string> {
  const context = await loadTurn(deps, turn, reasonStep(1))
  return context === null ? '' : readSystemPrompt(deps, context)
}

const resultsOf = async (id: string): Promise<Json[]> =>
  (await listEvents(service.url, id)).filter(({ type }) => type === 'tool.completed').map(({ data }) => data)

describe('a turn', () => {
  it('has the tools as they are now, in its first prompt', async () => {
    const server = await addServer({ ...toolColumns([listedTool('old')]), toolsExpireAt: EXPIRED })
    mcp.answer = async () => discovered([listedTool('new')])
    const { id, turn } = await createTurn([server])
    expect(await reasonOn(turn)).toMatchObject({ outcome: 'answered' })
    expect(await toolsOf(id)).toEqual([server.tool('new')])
    expect(mcp.discoveries).toHaveLength(1)
  })

  it('asks no server whose list holds', async () => {
    const server = await addServer({ ...toolColumns([listedTool('kept')]), toolsExpireAt: FRESH })
    const { id, turn } = await createTurn([server])
    await reasonOn(turn)
    expect(await toolsOf(id)).toEqual([server.tool('kept')])
    expect(mcp.discoveries).toEqual([])
  })

  it('goes on with the old list when the server is slow; the new one is stored for the next turn', () =>
    withWaits({ knownMs: 1, firstMs: 60_000, placeMs: 60_000 }, async () => {
      const server = await addServer({ ...toolColumns([listedTool('old')]), toolsExpireAt: EXPIRED })
      const { promise, resolve } = Promise.withResolvers<Discovered>()
      mcp.answer = () => promise
      const { id, turn } = await createTurn([server])
      expect(await reasonOn(turn)).toMatchObject({ outcome: 'answered' })
      expect(await toolsOf(id)).toEqual([server.tool('old')])
      resolve(discovered([listedTool('new')]))
      await waitFor(async () => JSON.stringify((await rowOf(server.id)).tools).includes('"new"'), 'the new list')
      expect(mcp.discoveries).toHaveLength(1)
    }))

  it('waits for the first list of a server', () =>
    withWaits({ knownMs: 1, firstMs: 60_000, placeMs: 60_000 }, async () => {
      const server = await addServer({ toolsExpireAt: EXPIRED })
      await forget(server.id)
      const { promise, resolve } = Promise.withResolvers<Discovered>()
      mcp.answer = () => promise
      const { id, turn } = await createTurn([server])
      const running = reasonOn(turn)
      await waitFor(async () => mcp.discoveries.length === 1, 'the discovery')
      // Longer than for a server that has a list.
      setTimeout(() => resolve(discovered([listedTool('first')])), 100)
      expect(await running).toMatchObject({ outcome: 'answered' })
      expect(await toolsOf(id)).toEqual([server.tool('first')])
    }))

  it('does without lists that are too large together, the last ones, and says so', async () => {
    const large = (name: string) => listedTool(name, { description: 'x'.repeat(900_000) })
    const servers = []
    for (const name of ['one', 'two', 'three']) {
      servers.push(await addServer({ ...toolColumns([large(name)]), toolsExpireAt: FRESH }))
    }
    const unread = await addServer({ toolsExpireAt: FRESH })
    await forget(unread.id)
    const [one, two, three] = servers.map(({ id }) => `mcp:${id}`)
    const refs = [three, one, two, `mcp:${unread.id}`].map((ref) => ({ ref: String(ref) }))
    const organizationId = (await rowOf(unread.id)).organizationId
    const own = async (only?: { toolName: string }) =>
      (await readCapabilities(deps, organizationId, refs, only)).filter(({ category }) => category === 'mcp')
    const read = await own()
    expect(read.map(({ id, tools }) => [id, tools.length])).toEqual([
      [three, 1],
      [one, 1],
      [two, 0],
      [`mcp:${unread.id}`, 0],
    ])
    expect(read.map(({ systemPrompt }) => systemPrompt)).toEqual([
      undefined,
      undefined,
      expect.stringContaining('are left out, because the lists of tools of all servers are too large together'),
      expect.stringContaining('have not been read yet'),
    ])
    // Of the others none takes room.
    await deps.db.mcpServer.updateMany({ where: { id: servers[2]?.id ?? '' }, data: { status: 'disabled' } })
    expect((await own()).map(({ tools }) => tools.length)).toEqual([0, 1, 1, 0])
    const ofCall = async (toolName: string) => (await own({ toolName })).map(({ id, tools }) => [id, tools.length])
    expect(await ofCall(String(servers[1]?.tool('any')))).toEqual([[two, 1]])
    expect(await ofCall('mcp_none__any')).toEqual([])
    expect(await ofCall('read_file')).toEqual([])
  })

  it('reads what is accepted only where it matters', async () => {
    const tools = toolColumns([listedTool('one')])
    const server = await addServer({ ...tools, acceptedTools: [], toolsExpireAt: FRESH })
    const { organizationId } = await rowOf(server.id)
    const accepted = async () =>
      (await readServersForUse(deps, organizationId, [server.id])).map(({ acceptedTools }) => acceptedTools)
    expect(await accepted()).toEqual([null])
    await deps.db.mcpServer.updateMany({ where: { id: server.id }, data: { toolsPolicy: 'ask' } })
    expect(await accepted()).toEqual([[]])
  })

  it('goes on without a server that is away, and the model is told', async () => {
    const server = await addServer({ toolsExpireAt: EXPIRED }, { name: 'A<capability> "B"' })
    await forget(server.id)
    const other = await addServer({ ...toolColumns([listedTool('kept')]), toolsExpireAt: EXPIRED })
    mcp.answer = async ({ id }) => {
      if (id === server.id) throw new McpFailure('The server is away')
      return discovered([listedTool('kept')])
    }
    const { id, turn } = await createTurn([server, other])
    expect(await reasonOn(turn)).toMatchObject({ outcome: 'answered' })
    expect(await toolsOf(id)).toEqual([other.tool('kept')])
    const prompt = await promptOf(turn)
    expect(prompt).toContain('A&lt;capability>')
    expect(prompt).toContain('are not available at the moment')
    expect((await rowOf(server.id)).toolsError).toBe('The server is away')
  })

  it('stops waiting for a server when it is aborted', async () => {
    const server = await addServer({ ...toolColumns([listedTool('old')]), toolsExpireAt: EXPIRED })
    mcp.answer = (_, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const { turn } = await createTurn([server])
    const stopped = new AbortController()
    const running = reasonOn(turn, 1, stopped.signal)
    await waitFor(async () => mcp.discoveries.length === 1, 'the discovery')
    stopped.abort(new Error('the worker stops'))
    await expect(running).rejects.toThrow('the worker stops')
  })

  it('has at most 128 tools, chosen by a configuration', async () => {
    const tools = Array.from({ length: 130 }, (_, at) => listedTool(`t${at}`))
    const server = await addServer({ ...toolColumns(tools), toolsExpireAt: FRESH })
    const all = await createTurn([server])
    await reasonOn(all.turn)
    expect(await toolsOf(all.id)).toHaveLength(128)
    expect(await promptOf(all.turn)).toContain(
      `2 of this capability are left out and cannot be called: ${server.tool('t128')}, `,
    )
    const some = await createTurn([{ ...server, config: { tools: ['t129', 'none'] } }])
    await reasonOn(some.turn)
    expect(await toolsOf(some.id)).toEqual([server.tool('t129')])
    expect(await promptOf(some.turn)).toContain('The server has no tools named "none".')
    const capabilities = [{ ref: `mcp:${server.id}` }]
    const preview = await call(service.url, 'POST', '/v1/agents/preview', { system_prompt: 'Help.', capabilities })
    expect(preview.body.tools).toHaveLength(128)
    expect(preview.body.system_prompt).toContain('2 of this capability are left out')
  })
})

describe('a call', () => {
  const callOf = (name: string, args: object = { text: 'hi' }) => [
    { tool_calls: [{ id: 'one', name, arguments: args }] },
    { text: 'done' },
  ]

  it('goes to the server with its credentials, unless its arguments are wrong', async () => {
    const columns = { ...toolColumns([listedTool('search.all')]), toolsExpireAt: FRESH, protocol: { any: 1 } }
    const server = await addServer(columns, { api_key: KEY, headers: { 'X-Team': 'ours' } })
    const capability = (await call(service.url, 'GET', `/v1/capabilities/mcp:${server.id}`)).body
    const { name } = capability.tool_definitions[0]
    const { id, turn } = await createTurn([server], callOf(name))
    expect(await reasonOn(turn)).toMatchObject({ outcome: 'act', runs: [{ tool: name, timeoutMs: 630_000 }] })
    expect(await runTool(deps, turn, 1, 0, attempt)).toEqual({ outcome: 'done' })
    expect(mcp.calls).toMatchObject([
      {
        endpoint: { id: server.id, revision: 0, apiKey: KEY, headers: { 'X-Team': 'ours' }, protocol: { any: 1 } },
        call: { tool: 'search.all', arguments: { text: 'hi' }, sessionId: turn.sessionId, answers: [] },
      },
    ])
    expect(mcp.calls[0]?.call.idempotencyKey).toMatch(/^turn_[0-9a-f]{32}:1:0$/)
    const [result] = await resultsOf(id)
    expect(result).toMatchObject({
      status: 'success',
      display_name: expect.stringMatching(/^Server \d+: search\.all$/),
    })
    const wrong = await createTurn([server], callOf(name, { text: 1 }))
    expect(await reasonOn(wrong.turn)).toMatchObject({ outcome: 'act', runs: [] })
    expect(await resultsOf(wrong.id)).toMatchObject([{ status: 'error', error: expect.stringContaining('text') }])
    expect(mcp.calls).toHaveLength(1)
  })

  it('has the defaults of what its tool requires, which its approval shows, and nothing else that was left out', async () => {
    const inputSchema = {
      type: 'object',
      properties: {
        scale: { type: 'string', enum: ['css', 'device'], default: 'css' },
        size: { type: 'integer', default: 1 },
        type: { type: 'string', default: null },
        text: { type: 'string' },
      },
      required: ['scale', 'size'],
    }
    const large = { properties: { text: { default: 'x'.repeat(8 * 1024) } }, required: ['text'] }
    const listed = [listedTool('shoot', { inputSchema }), listedTool('large', { inputSchema: large })]
    const server = await addServer({ ...toolColumns(listed), toolsExpireAt: FRESH })
    const guard = { type: 'builtin', name: server.tool('shoot'), policy: 'requires_approval' }
    const { id, turn } = await createTurn([server], callOf(server.tool('shoot'), { size: 2 }), [guard])
    expect(await reasonOn(turn)).toMatchObject({ outcome: 'act', asks: true })
    await requestCalls(deps, turn, 1)
    const tool_results = [{ tool_call_id: 'one', result: { approved: true } }]
    const answer = await call(service.url, 'POST', `/v1/sessions/${id}/tool-results`, { tool_results })
    expect(answer.status).toBe(200)
    const requested = (await listEvents(service.url, id)).find(({ type }) => type === 'tool.call_requested')
    expect(requested?.data.tool_calls[0].arguments).toEqual({ size: 2, scale: 'css' })
    await settleCalls(deps, turn, 1)
    expect(await runTool(deps, turn, 1, 0, attempt)).toEqual({ outcome: 'done' })
    expect(await resultsOf(id)).toMatchObject([{ status: 'success' }])
    expect(mcp.calls.map(({ call }) => call.arguments)).toEqual([{ size: 2, scale: 'css' }])
    for (const [name, args] of [
      ['shoot', { scale: 'huge' }],
      ['large', {}],
    ] as const) {
      const wrong = await createTurn([server], callOf(server.tool(name), args))
      expect(await reasonOn(wrong.turn)).toMatchObject({ outcome: 'act', runs: [] })
    }
  })

  it('in which the server says that its tools have changed has the next prompt with the new ones', async () => {
    const server = await addServer({ ...toolColumns([listedTool('old')]), toolsExpireAt: FRESH })
    const { id, turn } = await createTurn([server], callOf(server.tool('old')))
    await reasonOn(turn)
    await runTool(deps, turn, 1, 0, attempt)
    mcp.answer = async () => discovered([listedTool('old'), listedTool('new')])
    mcp.calls[0]?.call.onToolsChanged()
    await waitFor(async () => Number((await rowOf(server.id)).toolsExpireAt) <= Date.now(), 'the list to expire')
    expect(await reasonOn(turn, 2)).toMatchObject({ outcome: 'answered' })
    expect(await toolsOf(id)).toEqual([server.tool('old'), server.tool('new')])
  })

  it('of a tool that is not accepted waits for approval, also when it was planned before the change', async () => {
    const columns = { ...toolColumns([listedTool('one')]), toolsExpireAt: FRESH }
    const server = await addServer(columns, { tools_policy: 'ask' })
    const planned = await createTurn([server], callOf(server.tool('one')))
    expect(await reasonOn(planned.turn)).toMatchObject({ outcome: 'act', asks: false, runs: [{}] })
    mcp.answer = async () => discovered([listedTool('one', { description: 'Does something else.' })])
    await refreshTools(deps, await rowOf(server.id))
    expect(await runTool(deps, planned.turn, 1, 0, attempt)).toEqual({ outcome: 'done' })
    const error = 'The tool has changed, or waits for approval now; call it again.'
    expect(await resultsOf(planned.id)).toMatchObject([{ status: 'error', error }])
    const later = await createTurn([server], callOf(server.tool('one')))
    expect(await reasonOn(later.turn)).toMatchObject({ outcome: 'act', asks: true, runs: [] })
    expect(mcp.calls).toEqual([])
  })

  it.each([
    ['runs when it is approved', 'Does something else.', 'success'],
    ['does not run when another tool has been approved', 'Does a third thing.', 'error'],
  ])('of a changed tool %s', async (_, description, status) => {
    const columns = { ...toolColumns([listedTool('one')]), toolsExpireAt: FRESH }
    const server = await addServer(columns, { tools_policy: 'ask' })
    mcp.answer = async () => discovered([listedTool('one', { description: 'Does something else.' })])
    await refreshTools(deps, await rowOf(server.id))
    const { id, turn } = await createTurn([server], callOf(server.tool('one')))
    expect(await reasonOn(turn)).toMatchObject({ outcome: 'act', asks: true, runs: [] })
    await requestCalls(deps, turn, 1)
    mcp.answer = async () => discovered([listedTool('one', { description })])
    await refreshTools(deps, await rowOf(server.id))
    const tool_results = [{ tool_call_id: 'one', result: { approved: true } }]
    const path = `/v1/sessions/${id}/tool-results`
    expect((await call(service.url, 'POST', path, { tool_results })).status).toBe(200)
    expect(await settleCalls(deps, turn, 1)).toMatchObject({ outcome: 'settled', runs: [{}] })
    expect(await runTool(deps, turn, 1, 0, attempt)).toEqual({ outcome: 'done' })
    expect(await resultsOf(id)).toMatchObject([{ status }])
    expect(mcp.calls).toHaveLength(status === 'success' ? 1 : 0)
  })

  it('of a guarded tool waits for approval when its server has swapped names with another, and runs only there', async () => {
    const columns = { ...toolColumns([listedTool('erase')]), toolsExpireAt: FRESH }
    const [one, two] = [await addServer(columns), await addServer(columns)]
    const guard = { type: 'builtin', name: one.tool('erase'), policy: 'requires_approval' }
    const turnOf = (name: string) => createTurn([one, two], callOf(name), [guard])
    const planned = await turnOf(two.tool('erase'))
    expect(await reasonOn(planned.turn)).toMatchObject({ outcome: 'act', asks: false, runs: [{}] })
    const approved = await turnOf(one.tool('erase'))
    expect(await reasonOn(approved.turn)).toMatchObject({ outcome: 'act', asks: true, runs: [] })
    await requestCalls(deps, approved.turn, 1)
    const rename = (id: string, name: string) =>
      call(service.url, 'PATCH', `/v1/mcp-servers/mcp_${id.replaceAll('-', '')}`, { name })
    for (const [{ id }, name] of [
      [one, 'Between'],
      [two, one.name],
      [one, two.name],
    ] as const) {
      expect((await rename(id, name)).status).toBe(200)
    }
    const tool_results = [{ tool_call_id: 'one', result: { approved: true } }]
    await call(service.url, 'POST', `/v1/sessions/${approved.id}/tool-results`, { tool_results })
    expect(await settleCalls(deps, approved.turn, 1)).toMatchObject({ outcome: 'settled', runs: [{}] })
    for (const { id, turn } of [planned, approved]) {
      expect(await runTool(deps, turn, 1, 0, attempt)).toEqual({ outcome: 'done' })
      expect(await resultsOf(id)).toMatchObject([{ status: 'error', error: expect.stringContaining('call it again') }])
    }
    const later = await turnOf(two.tool('erase'))
    expect(await reasonOn(later.turn)).toMatchObject({ outcome: 'act', asks: true, runs: [] })
    expect(mcp.calls).toEqual([])
  })

  it("of an unguarded tool runs while the server of a guard is disabled, or is not the agent's any more", async () => {
    const columns = { ...toolColumns([listedTool('erase')]), toolsExpireAt: FRESH }
    const [one, two] = [await addServer(columns), await addServer(columns)]
    const guard = { type: 'builtin', name: one.tool('erase'), policy: 'requires_approval' }
    const turnOf = () => createTurn([one, two], callOf(two.tool('erase')), [guard])
    const [disabled, removed] = [await turnOf(), await turnOf()]
    const capabilities = [{ ref: `mcp:${two.id}` }]
    await deps.db.agent.updateMany({
      where: { sessions: { some: { id: removed.turn.sessionId } } },
      data: { capabilities },
    })
    expect(await reasonOn(removed.turn)).toMatchObject({ outcome: 'act', asks: false, runs: [{}] })
    await deps.db.mcpServer.updateMany({ where: { id: one.id }, data: { status: 'disabled' } })
    expect(await reasonOn(disabled.turn)).toMatchObject({ outcome: 'act', asks: false, runs: [{}] })
  })

  it('with damaged credentials is answered with an error that says so', async () => {
    const columns = { ...toolColumns([listedTool('one')]), toolsExpireAt: FRESH }
    const server = await addServer(columns, { api_key: KEY })
    const { credentials } = await rowOf(server.id)
    const damaged = Uint8Array.from(credentials ?? []).with(45, (credentials?.[45] ?? 0) ^ 1)
    await deps.db.mcpServer.updateMany({ where: { id: server.id }, data: { credentials: damaged } })
    const { id, turn } = await createTurn([server], callOf(server.tool('one')))
    await reasonOn(turn)
    await runTool(deps, turn, 1, 0, attempt)
    const error = expect.stringMatching(/^The stored credentials of Server \d+ are damaged/)
    expect(await resultsOf(id)).toMatchObject([{ status: 'error', error }])
  })
})
