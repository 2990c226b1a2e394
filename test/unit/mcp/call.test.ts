import { setTimeout as delay } from 'node:timers/promises'
import type { Received } from '../../support/hostile-mcp-server.ts'
import { callOf, closeAll, endpointOf, failureOf, never, newClient, newServer } from './support.ts'

closeAll()

const DONE = { content: [{ type: 'text', text: 'done' }] }

/** Answers after a while in which the test can look. */
const slowly =
  (ms: number) =>
  ({ reply }: Received) =>
    void setTimeout(() => reply(DONE), ms)

describe('a call', () => {
  it('has its key in the header of its request, and nowhere else', async () => {
    const server = await newServer()
    await newClient().call(endpointOf(server), callOf({ idempotencyKey: 'turn:1' }))
    const keys = server.received.map(({ method, headers }) => [method, headers['idempotency-key']])
    expect(keys).toContainEqual(['tools/call', 'turn:1'])
    expect(keys.filter(([, key]) => key !== undefined).length).toBe(1)
  })

  it('has the headers of its endpoint, but its own for the transport', async () => {
    const server = await newServer()
    const headers = {
      'X-Team': 'blue',
      Accept: 'text/html',
      'Content-Type': 'text/plain',
      'Content-Length': '3',
      Host: 'other.example',
      Connection: 'close',
      'Transfer-Encoding': 'chunked',
      'Mcp-Session-Id': 'stolen',
      'mcp-protocol-version': '1',
      'Idempotency-Key': 'other',
      'Last-Event-ID': '7',
    }
    const endpoint = endpointOf(server, { apiKey: 'key', headers })
    expect(await newClient().call(endpoint, callOf())).toEqual({ value: '{}' })
    const [received] = server.of('tools/call')
    expect(received?.headers).toMatchObject({
      'x-team': 'blue',
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      host: `127.0.0.1:${server.port}`,
      'mcp-session-id': 'session-1',
      'idempotency-key': 'key',
      authorization: 'Bearer key',
    })
    expect(received?.headers['last-event-id']).toBeUndefined()
  })

  it('has the Authorization of its endpoint rather than the key', async () => {
    const server = await newServer()
    await newClient().call(endpointOf(server, { apiKey: 'key', headers: { AUTHORIZATION: 'Basic abc' } }), callOf())
    expect(server.received.every(({ headers }) => headers.authorization === 'Basic abc')).toBe(true)
  })

  it('fails when its stream ends without a result', async () => {
    const server = await newServer({
      'tools/call': ({ stream, response }) => {
        stream()({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } })
        response.end()
      },
    })
    const { message } = await failureOf(newClient().call(endpointOf(server), callOf()))
    expect(message).toMatch(/ended its answer without a result; the call may have had its effect\.$/)
  })

  it('fails when the server hangs up in the middle of its stream', async () => {
    const server = await newServer({
      'tools/call': ({ stream, response }) => {
        stream()({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } })
        setTimeout(() => response.destroy(), 10)
      },
    })
    const { message } = await failureOf(newClient().call(endpointOf(server), callOf()))
    expect(message).toMatch(/cannot be reached: The answer broke off/)
  })

  it('goes on where its stream broke off, when the server can do that', async () => {
    const server = await newServer({
      'tools/call': ({ id, response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(`id: event-${id}\nretry: 0\ndata:\n\n`)
      },
    })
    let id: unknown
    server.answers.GET = ({ headers, status, stream, response }) => {
      if (headers['last-event-id'] === undefined) return status(405)
      id = server.of('tools/call')[0]?.id
      stream()({ jsonrpc: '2.0', id, result: DONE })
      response.end()
    }
    expect(await newClient({ times: { reconnect: 10 } }).call(endpointOf(server), callOf())).toEqual({ value: 'done' })
  })

  it('leaves nothing open when the server goes on after its result', async () => {
    const server = await newServer({
      'tools/call': ({ id, stream }) => stream()({ jsonrpc: '2.0', id, result: DONE }),
    })
    expect(await newClient().call(endpointOf(server), callOf())).toEqual({ value: 'done' })
    await server.of('tools/call')[0]?.ended
  })

  it('takes longer while the server reports progress, but not for ever', async () => {
    const progress =
      (ms: number) =>
      ({ id, params, stream, response }: Received) => {
        const send = stream()
        const { progressToken } = params._meta as { progressToken: unknown }
        let steps = 0
        const timer = setInterval(() => {
          send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: ++steps } })
          if (steps < ms / 50) return
          clearInterval(timer)
          send({ jsonrpc: '2.0', id, result: DONE })
        }, 50)
        response.once('close', () => clearInterval(timer))
      }
    const server = await newServer({ 'tools/call': progress(500) })
    const times = { call: 400, callWithProgress: 10_000 }
    expect(await newClient({ times }).call(endpointOf(server), callOf())).toEqual({ value: 'done' })
    server.answers['tools/call'] = progress(60_000)
    const { message } = await failureOf(
      newClient({ times: { ...times, callWithProgress: 250 } }).call(endpointOf(server), callOf()),
    )
    expect(message).toBe('The MCP server "Acme" did not finish the call within 0.25 s.')
    await server.of('tools/call')[1]?.ended
  })
})

it('a call reports the progress of its server, in one line without credentials', async () => {
  const apiKey = 'sk-very-secret-key'
  const server = await newServer({
    'tools/call': ({ id, params, stream }) => {
      const send = stream()
      const { progressToken } = params._meta as { progressToken: unknown }
      for (const progress of [
        { progress: 1, total: 3, message: `Reading\u202e\n ${apiKey} ${'x'.repeat(5_000)}` },
        { progress: 2.5 },
      ]) {
        send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, ...progress } })
      }
      send({ jsonrpc: '2.0', id, result: DONE })
    },
  })
  const reports: object[] = []
  await newClient().call(endpointOf(server, { apiKey }), callOf({ onProgress: (progress) => reports.push(progress) }))
  const message = expect.stringMatching(/^Reading \[hidden\] x{900,1000}…$/)
  expect(reports).toEqual([{ progress: 1, total: 3, message }, { progress: 2.5 }])
})

describe('a cancelled call', () => {
  it('ends with the reason of its signal, and the server is told', async () => {
    const server = await newServer({ 'tools/call': () => {} })
    const stop = new AbortController()
    const calling = failureOf(newClient().call(endpointOf(server), callOf({ signal: stop.signal })))
    await received(server, 'tools/call')
    const reason = new Error('the turn was cancelled by Ann')
    stop.abort(reason)
    expect(await calling).toBe(reason)
    const { params } = await received(server, 'notifications/cancelled')
    const requestId = server.of('tools/call')[0]?.id
    expect(params).toEqual({ requestId, reason: 'Error: The call was cancelled.' })
    await server.of('tools/call')[0]?.ended
  })

  it('ends although the server never takes note', async () => {
    const server = await newServer({ 'tools/call': () => {}, 'notifications/cancelled': () => {} })
    const { message } = await failureOf(newClient({ times: { call: 100 } }).call(endpointOf(server), callOf()))
    expect(message).toBe('The MCP server "Acme" did not answer within 0.1 s.')
    await received(server, 'notifications/cancelled')
  })

  it('does not begin when its signal has aborted', async () => {
    const server = await newServer()
    const reason = new Error('before')
    expect(await failureOf(newClient().call(endpointOf(server), callOf({ signal: AbortSignal.abort(reason) })))).toBe(
      reason,
    )
    expect(server.received).toEqual([])
  })

  it('does not end the connecting that another call waits for', async () => {
    const server = await newServer({ initialize: () => {} })
    const client = newClient()
    const stop = new AbortController()
    const first = failureOf(client.call(endpointOf(server), callOf({ signal: stop.signal })))
    const second = client.call(endpointOf(server), callOf())
    const initialize = await received(server, 'initialize')
    stop.abort(new Error('cancelled'))
    expect((await first).message).toBe('cancelled')
    const { protocolVersion } = initialize.params
    initialize.reply({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } })
    expect(await second).toEqual({ value: '{}' })
  })
})

describe('connections', () => {
  it('are shared by the calls of a session, and by nobody else', async () => {
    const server = await newServer({ 'tools/call': slowly(50) })
    const client = newClient()
    const run = (more = {}, sessionId = 'one') => client.call(endpointOf(server, more), callOf({ sessionId }))
    await Promise.all([run(), run(), run({}, 'two'), run({ revision: 2 }), run({ organizationId: 'other' })])
    await run()
    expect([server.of('initialize').length, server.of('tools/call').length]).toEqual([4, 6])
  })

  it('are closed when they are not used, and their sessions end', async () => {
    const server = await newServer()
    const client = newClient({ times: { idle: 50 } })
    await client.call(endpointOf(server), callOf())
    const { headers } = await received(server, 'DELETE')
    expect(headers['mcp-session-id']).toBe('session-1')
    await client.call(endpointOf(server), callOf())
    expect(server.of('initialize').length).toBe(2)
  })

  it('have a limit: the longest unused one is closed, never a used one', async () => {
    const server = await newServer()
    const client = newClient({ maxConnections: 2 })
    const run = (sessionId: string) => client.call(endpointOf(server), callOf({ sessionId }))
    await run('one')
    await run('two')
    await run('one')
    await run('three')
    await run('one')
    expect(server.of('initialize').length).toBe(3)
    server.answers['tools/call'] = slowly(100)
    const used = [run('one'), run('three')]
    const { message } = await failureOf(run('four'))
    expect(message).toBe('All connections to MCP servers are in use. Try again later.')
    expect(await Promise.all(used)).toEqual([{ value: 'done' }, { value: 'done' }])
  })

  it.each<[string, (request: Received) => void]>([
    ['404', ({ status }) => status(404, JSON.stringify({ error: { code: -32_001, message: 'Session not found' } }))],
    ['400', ({ status }) => status(400, JSON.stringify({ error: { message: 'No valid session ID provided' } }))],
  ])('are opened anew when the server has forgotten the session: %s', async (_, forget) => {
    const server = await newServer()
    const client = newClient()
    await client.call(endpointOf(server), callOf())
    let forgotten = 0
    server.answers['tools/call'] = (request) => (forgotten++ === 0 ? forget(request) : request.reply(DONE))
    const both = await Promise.all([1, 2].map(() => client.call(endpointOf(server), callOf({ idempotencyKey: 'k' }))))
    expect(both).toEqual([{ value: 'done' }, { value: 'done' }])
    expect(server.of('initialize').length).toBe(2)
    expect(
      server
        .of('tools/call')
        .slice(1)
        .every(({ headers }) => headers['idempotency-key'] === 'k'),
    ).toBe(true)
  })

  it('are opened anew once only', async () => {
    const server = await newServer()
    const client = newClient()
    await client.call(endpointOf(server), callOf())
    server.answers['tools/call'] = ({ status }) => status(404)
    const { message } = await failureOf(client.call(endpointOf(server), callOf()))
    expect(message).toMatch(/answered with the status 404/)
    expect([server.of('initialize').length, server.of('tools/call').length]).toEqual([2, 3])
  })

  it('are not opened anew for a call that may have been processed', async () => {
    const server = await newServer()
    const client = newClient()
    await client.call(endpointOf(server), callOf())
    server.answers['tools/call'] = ({ status }) => status(400, 'Bad arguments')
    await failureOf(client.call(endpointOf(server), callOf()))
    server.answers['tools/call'] = ({ response }) => response.destroy()
    await failureOf(client.call(endpointOf(server), callOf()))
    expect([server.of('initialize').length, server.of('tools/call').length]).toEqual([1, 3])
  })

  it('do not ask for a broken stream again and again, whatever the server says', async () => {
    const server = await newServer({
      GET: ({ response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 0\nid: 1\ndata:\n\n')
      },
    })
    const client = newClient({ times: { reconnect: 100 } })
    await client.call(endpointOf(server), callOf())
    await delay(350)
    expect(server.received.filter(({ httpMethod }) => httpMethod === 'GET').length).toBeLessThanOrEqual(5)
  })

  it('open the stream of a session again five times, however often it breaks off', async () => {
    const server = await newServer({
      GET: ({ response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 0\nid: 1\ndata:\n\n')
      },
    })
    const client = newClient({ times: { reconnect: 1 } })
    await client.call(endpointOf(server), callOf())
    const opened = () => server.received.filter(({ httpMethod }) => httpMethod === 'GET').length
    while (opened() < 6) await delay(5)
    await delay(150)
    expect(opened()).toBe(6)
  })

  it('read 8 MiB of what answers no call, in all streams of a session together', async () => {
    const comment = `: ${'x'.repeat(1024)}\n`.repeat(7 * 1024)
    const streams: Received[] = []
    const server = await newServer({
      GET: (request) => {
        request.stream()
        request.response.write(comment)
        // A stream that ends is opened again.
        if (streams.push(request) === 1) request.response.end()
      },
    })
    await newClient({ times: { reconnect: 1 } }).call(endpointOf(server), callOf())
    while (streams.length < 2) await delay(5)
    const end = streams[1]?.ended.then(() => 'ended by the client')
    expect(await Promise.race([end, delay(10_000, 'still open')])).toBe('ended by the client')
  })

  it('open the stream of a call again as long as the call goes on', async () => {
    const brokenOff = ({ response }: Received) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 1\nretry: 0\ndata:\n\n')
    }
    let opened = 0
    const server = await newServer({ 'tools/call': brokenOff })
    server.answers.GET = (request) => {
      if (request.headers['last-event-id'] === undefined) return request.status(405)
      if (++opened < 8) return brokenOff(request)
      request.stream()({ jsonrpc: '2.0', id: server.of('tools/call')[0]?.id, result: DONE })
      request.response.end()
    }
    expect(await newClient({ times: { reconnect: 1 } }).call(endpointOf(server), callOf())).toEqual({ value: 'done' })
  })

  it('end with the client, and so do the calls on them', async () => {
    const server = await newServer({ 'tools/call': () => {}, DELETE: () => {} })
    const client = newClient({ times: { goodbye: 50 } })
    const calling = failureOf(client.call(endpointOf(server), callOf()))
    await received(server, 'tools/call')
    await client.close()
    expect((await calling).message).toBe('The service is stopping.')
    await Promise.all(server.received.map(({ ended }) => ended))
    expect((await failureOf(client.call(endpointOf(server), callOf()))).message).toBe('The service is stopping.')
    expect((await failureOf(client.discover(endpointOf(server), never()))).message).toBe('The service is stopping.')
  })
})

describe('tools that change', () => {
  it('are reported to the latest call, not for each of many notices', async () => {
    let notify: (message: unknown) => void = () => {}
    const server = await newServer({
      GET: ({ stream }) => {
        notify = stream()
      },
    })
    const client = newClient({ times: { changes: 100 } })
    const reports: string[] = []
    await client.call(endpointOf(server), callOf({ onToolsChanged: () => reports.push('first') }))
    await client.call(endpointOf(server), callOf({ onToolsChanged: () => reports.push('second') }))
    await received(server, 'GET')
    for (let notice = 0; notice < 500; notice++) {
      notify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
    }
    await delay(350)
    expect(reports.every((which) => which === 'second')).toBe(true)
    expect(reports.length).toBeGreaterThan(1)
    expect(reports.length).toBeLessThan(20)
  })
})

/** Waits for a message, or for a request by its method of HTTP. */
async function received(server: { received: Received[] }, method: string): Promise<Received> {
  for (;;) {
    const found = server.received.find((one) => one.method === method || one.httpMethod === method)
    if (found !== undefined) return found
    await delay(5)
  }
}
