import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { ToolError } from '../../../domain/tools/capabilities/capability.ts'
import { InputRequired } from '../../../domain/tools/capabilities/questions.ts'
import type { McpEndpoint } from '../../../domain/tools/mcp/protocol/client.ts'
import { type StatelessServer, startStatelessServer } from '../../support/stateless-mcp-server.ts'
import { callOf, closeAll, endpointOf, failureOf, never, newClient, newServer } from './support.ts'

closeAll()

describe('a stateless server of the official library', () => {
  let server: StatelessServer
  beforeEach(async () => {
    server = await startStatelessServer()
  })
  afterEach(() => server.stop())

  const of = (method: string) => server.received.filter((one) => one.method === method)
  const discovered = async (): Promise<McpEndpoint> => {
    const { protocol } = await newClient().discover(endpointOf(server), never())
    server.received.length = 0
    return endpointOf(server, { protocol: JSON.parse(JSON.stringify(protocol)) })
  }

  it('lists its tools and what it speaks, without its instructions', async () => {
    const { tools, protocol } = await newClient().discover(endpointOf(server), never())
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'slow', 'ask', 'put-off', 'sample', 'regional'])
    expect(protocol).toMatchObject({ kind: 'modern', discover: { supportedVersions: ['2026-07-28'] } })
    expect(JSON.stringify(protocol)).not.toContain('Long ones')
  })

  it('is called without a question before, once that is known', async () => {
    const endpoint = await discovered()
    const call = callOf({ arguments: { name: 'Ann' }, idempotencyKey: 'k' })
    expect(await newClient().call(endpoint, call)).toEqual({ value: '{"name":"Ann"}' })
    expect(of('server/discover')).toEqual([])
    expect(of('tools/call')[0]?.headers).toMatchObject({ 'idempotency-key': 'k', 'mcp-method': 'tools/call' })
  })

  it('is found out when it speaks another protocol than it did', async () => {
    const endpoint = endpointOf(server, { protocol: { kind: 'legacy' } })
    const { value } = await newClient().call(endpoint, callOf({ arguments: { name: 'Ann' } }))
    expect(value).toBe('{"name":"Ann"}')
  })

  it('is found out when it speaks the protocol of before again', async () => {
    const { protocol } = await discovered()
    const before = await newServer({
      'tools/call': ({ headers, status, reply }) =>
        headers['mcp-session-id'] === undefined
          ? status(400, '{"error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}')
          : reply({ content: [{ type: 'text', text: 'done' }] }),
    })
    expect(await newClient().call(endpointOf(before, { protocol }), callOf())).toEqual({ value: 'done' })
    expect([before.of('initialize').length, before.of('tools/call').length]).toEqual([1, 2])
  })

  it('is told by the end of the stream that a call is cancelled', async () => {
    const client = newClient()
    const stop = new AbortController()
    const calling = failureOf(client.call(endpointOf(server), callOf({ tool: 'slow', signal: stop.signal })))
    await until(() => of('tools/call').length === 1)
    stop.abort(new Error('cancelled'))
    expect((await calling).message).toBe('cancelled')
    await until(() => server.aborted() === 1)
  })

  it('asks, and gets its state back byte for byte with the answers', async () => {
    const client = newClient()
    const asked = await failureOf(client.call(endpointOf(server), callOf({ tool: 'ask' })))
    expect(asked).toBeInstanceOf(InputRequired)
    expect(asked).toMatchObject({
      questions: [
        { key: 'who', message: 'Who?', schema: { required: ['name'] } },
        { key: 'pay', message: 'Pay', url: 'https://shop.example/pay' },
      ],
      state: 'stäte "1"',
    })
    const { state } = asked as InputRequired
    const answers = { who: { action: 'accept', content: { name: 'Ann' } }, pay: { action: 'decline' } } as const
    const call = callOf({ tool: 'ask', answers: [{ answers, state }] })
    const { value } = await client.call(endpointOf(server), call)
    expect(JSON.parse(`${value}`)).toEqual(['stäte "1"', answers])
    expect(of('tools/call').map(({ headers }) => headers['idempotency-key'])).toEqual(['key', 'key:1'])
  })

  it('may put a call off', async () => {
    const client = newClient({ times: { again: 5 } })
    expect(await client.call(endpointOf(server), callOf({ tool: 'put-off' }))).toEqual({ value: 'now' })
    const keys = of('tools/call').map(({ headers }) => headers['idempotency-key'])
    expect(keys).toEqual(['key', 'key:again-1', 'key:again-2', 'key:again-3'])
  })

  it('is not given a model', async () => {
    const failure = await failureOf(newClient().call(endpointOf(server), callOf({ tool: 'sample' })))
    expect(failure).toBeInstanceOf(ToolError)
    expect(failure.message).toMatch(/^The MCP server "Acme" /)
  })

  it('tells that its tools have changed, which no call waits for', async () => {
    const client = newClient()
    let changes = 0
    const call = callOf({ arguments: { name: 'Ann' }, onToolsChanged: () => changes++ })
    await client.call(endpointOf(server), call)
    await until(() => of('subscriptions/listen').length === 1)
    await until(() => {
      server.changeTools()
      return changes > 0
    })
  })

  it('may have arguments repeated in headers, of its own kind only', async () => {
    const client = newClient()
    for (const region of ['eu', 'ü']) {
      const call = callOf({ tool: 'regional', arguments: { region } })
      expect(await client.call(endpointOf(server), call)).toEqual({ value: JSON.stringify({ region }) })
    }
    const sent = () => of('tools/call').map((one) => one.headers['mcp-param-region'])
    expect(sent()).toEqual([undefined, 'eu', '=?base64?w7w=?='])
    expect(of('tools/list').length).toBe(1)
    const { tools } = await client.discover(endpointOf(server), never())
    const inputSchema = tools.find(({ name }) => name === 'regional')?.inputSchema
    const call = callOf({ tool: 'regional', arguments: { region: 'us' }, inputSchema, sessionId: 'other' })
    await client.call(endpointOf(server), call)
    expect(sent().slice(3)).toEqual(['us'])
  })
})

describe('the reference server of the sessions of before', () => {
  it('is discovered and called', async () => {
    const { url, stop } = await startEverything()
    try {
      const client = newClient()
      const { tools, leftOut, protocol } = await client.discover(endpointOf({ url }), never())
      expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo', 'get-sum', 'get-tiny-image']))
      expect(leftOut).toMatchObject([
        { name: 'simulate-research-query', reason: expect.stringContaining('as a task only') },
      ])
      expect(protocol).toEqual({ kind: 'legacy' })
      const endpoint = endpointOf({ url }, { protocol })
      const call = (tool: string, args = {}, more = {}) =>
        client.call(endpoint, callOf({ tool, arguments: args, ...more }))
      expect(await call('get-sum', { a: 1, b: 2 })).toEqual({ value: 'The sum of 1 and 2 is 3.' })
      const { images } = await call('get-tiny-image')
      expect(images).toMatchObject([{ media_type: 'image/png' }])
      const { value } = await call('get-structured-content', { location: 'Chicago' })
      expect(value).toMatchObject({ structured_content: { conditions: expect.any(String) } })
      expect(await call('get-resource-links', { count: 1 })).toMatchObject({
        value: { resources: [{ uri: /^demo:/ }] },
      })
      expect(await call('trigger-long-running-operation', { duration: 0.2, steps: 4 })).toMatchObject({
        value: expect.stringContaining('completed'),
      })
      const asked = (await failureOf(call('trigger-elicitation-request'))) as InputRequired
      expect(asked).toBeInstanceOf(InputRequired)
      const answers = [{ answers: { question: { action: 'accept', content: { name: 'Ann' } } }, state: asked.state }]
      expect((await call('trigger-elicitation-request', {}, { answers })).value).toMatchObject({
        text: expect.stringContaining('Name: Ann'),
      })
      const visit = await failureOf(call('trigger-url-elicitation', { url: 'https://a.example/', errorPath: true }))
      expect(visit).toMatchObject({ questions: [{ url: 'https://modelcontextprotocol.io/' }] })
      expect((await failureOf(call('nothing'))).message).toMatch(/Tool nothing not found/)
    } finally {
      await stop()
    }
  })
})

async function startEverything() {
  const port = await freePort()
  const script = 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'
  const child = spawn(process.execPath, [script, 'streamableHttp'], { env: { PORT: `${port}` }, stdio: 'ignore' })
  const exited = once(child, 'exit')
  const url = `http://127.0.0.1:${port}/mcp`
  await until(() =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  )
  return {
    url,
    stop: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(10)
}
