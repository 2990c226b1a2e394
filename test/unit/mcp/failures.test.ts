import { ToolError } from '../../../domain/tools/capabilities/capability.ts'
import { McpFailure } from '../../../domain/tools/mcp/protocol/client.ts'
import type { McpTimes } from '../../../domain/tools/mcp/protocol/limits.ts'
import type { Received } from '../../support/hostile-mcp-server.ts'
import { callOf, closeAll, endpointOf, failureOf, never, newClient, newServer } from './support.ts'

closeAll()

const MiB = 1024 * 1024
const SHORT = { call: 200, discover: 200 }
const KEY = 'sk-very-secret-key'

type Answer = (request: Received) => void

/** Ways to fail that concern every request, and what is said of them. */
const FAILURES: [string, Answer, RegExp, Partial<McpTimes>?][] = [
  ['without valid credentials', ({ status }) => status(401), /refuses the call without valid credentials \(401\)/],
  ['without rights', ({ status }) => status(403, KEY), /refuses access with its credentials \(403\)/],
  [
    'too often',
    ({ status }) => status(429, '', { 'retry-after': '7' }),
    /called too often \(429\); try again after 7 s\./,
  ],
  [
    'without rights, and says why',
    ({ status }) => status(403, `Access is only\u0000\n allowed\u202e at ${KEY}`, { 'content-type': 'text/plain' }),
    /refuses access with its credentials \(403\): Access is only allowed at \[hidden\]$/,
  ],
  [
    'without rights, and says why without a type',
    ({ response }) => void response.writeHead(403).end('Access is only allowed at localhost:4023'),
    /\(403\): Access is only allowed at localhost:4023$/,
  ],
  [
    'without rights, and says it in JSON-RPC',
    ({ status }) => status(403, '{"error":{"message":"Invalid Host"}}', { 'content-type': 'application/json' }),
    /\(403\): Invalid Host$/,
  ],
  [
    'without rights, and says much',
    ({ status }) => status(403, 'x'.repeat(3_000), { 'content-type': 'text/plain' }),
    /refuses access with its credentials \(403\); an administrator has to check them\.$/,
  ],
  [
    'without rights, and never ends',
    ({ response }) => void response.writeHead(403, { 'content-type': 'text/plain' }).write('x'),
    /refuses access with its credentials \(403\); an administrator has to check them\.$/,
  ],
  ['too often, until a date', ({ status }) => status(429, '', { 'retry-after': 'Mon' }), /try again later\./],
  ['with an error', ({ status }) => status(500, '<h1>Stack</h1>'), /answered with the status 500\.$/],
  [
    'not there',
    ({ status }) => status(404, '<h1>Not found</h1>'),
    /answered with the status 404 and a page of HTML; is this its MCP address\?$/,
  ],
  [
    'to another method only',
    ({ status }) => status(405, '', { 'content-type': 'text/plain' }),
    /answered with the status 405; is this its MCP address\?$/,
  ],
  [
    'elsewhere',
    ({ status }) => status(307, '', { location: 'http://169.254.169.254/latest?key=1' }),
    /redirects, and redirects are not followed; an administrator has to set its final URL\.$/,
  ],
  [
    'with HTML',
    ({ status }) => status(200, '<p>Welcome</p>'),
    /protocol \(MCP\) but with a page of HTML; is this its MCP address\?$/,
  ],
  [
    'with malformed JSON',
    ({ status }) => status(200, '{"jsonrpc": "2.0", ', { 'content-type': 'application/json' }),
    /does not answer in the protocol \(MCP\)/,
  ],
  [
    'with other JSON',
    ({ status }) => status(200, '{"hello": 1}', { 'content-type': 'application/json' }),
    /does not answer in the protocol \(MCP\)/,
  ],
  [
    'with deep JSON',
    ({ status }) => status(200, '['.repeat(MiB), { 'content-type': 'application/json' }),
    /sent an answer with too many or too deeply nested parts\.$/,
  ],
  [
    'with too much',
    ({ response }) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(Buffer.alloc(9 * MiB, ' '))
    },
    /more than \d+ (bytes|MiB)/,
  ],
  ['with a closed connection', ({ response }) => response.destroy(), /cannot be reached: The connection to 127/],
  [
    'with half a body',
    ({ response }) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{')
      setTimeout(() => response.destroy(), 10)
    },
    /cannot be reached: The answer broke off/,
  ],
  ['not at all', () => {}, /within 0\.2 s/, SHORT],
  ['with an endless stream', ({ stream }) => void stream(), /within 0\.2 s/, SHORT],
  [
    'to another id',
    ({ response, method }) => {
      const answer = { jsonrpc: '2.0', id: 4711, result: { content: [], method } }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    },
    /ended its answer without a result/,
  ],
  [
    'with an error of the protocol',
    ({ fail }) => fail(-32_603, `Bad\u0000\n\u202ekey ${KEY} ${'x'.repeat(9_000)}`),
    /refused the call \(-32603\): Bad key \[hidden\] x{900,1000}…$/,
  ],
]

describe.each(FAILURES)('a server that answers %s', (_, answer, expected, times) => {
  it('fails a call in a sentence that names it', async () => {
    const server = await newServer({ 'tools/call': answer })
    const failure = await failureOf(newClient({ times }).call(endpointOf(server, { apiKey: KEY }), callOf()))
    expect(failure).toBeInstanceOf(ToolError)
    expect(failure.message).toMatch(expected)
    expect(failure.message).toMatch(/^The MCP server "Acme" /)
    expect(failure.message).not.toContain(KEY)
    expect(failure.message.length).toBeLessThan(1_200)
  })

  it('fails a discovery, wherever it happens', async () => {
    for (const method of ['server/discover', 'initialize', 'tools/list']) {
      // Some answers to the probe are what a server of before says: the next request tells more.
      const server = await newServer({ [method]: answer, ...(method === 'server/discover' && { initialize: answer }) })
      const client = newClient({ times })
      const failure = await failureOf(client.discover(endpointOf(server, { apiKey: KEY }), never()))
      expect(failure).toBeInstanceOf(McpFailure)
      expect(failure.message).toMatch(expected)
      expect(failure.message).not.toContain(KEY)
    }
  })
})

it('a refusal without credentials does not speak of any', async () => {
  const server = await newServer({ initialize: ({ status }) => status(403) })
  const { message } = await failureOf(newClient().discover(endpointOf(server), never()))
  expect(message).toMatch(/ refuses access, and has no credentials \(403\); an administrator may have to set them\.$/)
})

describe('an answer that costs much to parse', () => {
  const json = 'application/json'
  const events = 'text/event-stream'
  it.each<[string, string, string]>([
    ['deep JSON', json, `{"a":${'['.repeat(MiB)}`],
    ['many values', json, `[${'0,'.repeat(MiB)}0]`],
    ['many messages', json, `[${'{"jsonrpc":"2.0","id":9,"result":{}},'.repeat(20_000)}0]`],
    ['many events', events, 'data:{}\n\n'.repeat(26_000)],
    ['many lines', events, '\r'.repeat(MiB)],
    ['many values in one event', events, `data:[${'0,'.repeat(MiB)}0]\n\n`],
    ['many values in lines of one event', events, `data:[${'0,'.repeat(1_000)}\n`.repeat(200)],
    ['many values in lines with two ends', events, `data:[${'0,'.repeat(1_000)}\r\n`.repeat(200)],
    ['deep JSON after closing brackets', events, `: ${']'.repeat(5_000)}\ndata:${'['.repeat(1_000)}\n`],
    ['many values after a quote', events, `: "\ndata:[${'0,'.repeat(MiB)}0]\n\n`],
    ['deep JSON in an event', events, `data:${'['.repeat(1_000)}`],
  ])('is not parsed: %s', async (_, type, body) => {
    const server = await newServer({ 'tools/call': ({ status }) => status(200, body, { 'content-type': type }) })
    const { message } = await failureOf(newClient().call(endpointOf(server), callOf()))
    expect(message).toBe('The MCP server "Acme" sent an answer with too many or too deeply nested parts.')
  })

  it('may be long when it is simple', async () => {
    const words = '"[{,:]}\\" '.repeat(50_000)
    const result = { content: [{ type: 'text', text: words }] }
    const server = await newServer({
      'tools/call': ({ id, stream }) => {
        const send = stream()
        for (let step = 0; step < 1_000; step++) {
          send({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: ['a', '[', step] } })
        }
        send({ jsonrpc: '2.0', id, result })
      },
    })
    const { value } = await newClient().call(endpointOf(server), callOf())
    expect(`${value}`.slice(0, 100)).toBe(words.slice(0, 100))
  })

  it('is ended when the server asks without end', async () => {
    const server = await newServer({
      'tools/call': ({ stream }) => {
        const send = stream()
        for (let id = 0; id < 400; id++) send({ jsonrpc: '2.0', id, method: 'ping' })
      },
    })
    await failureOf(newClient({ times: { call: 300 } }).call(endpointOf(server), callOf()))
    expect(server.received.filter(({ result }) => result !== undefined).length).toBeLessThanOrEqual(300)
  })
})

describe('a server that cannot be reached', () => {
  it('is named', async () => {
    const server = await newServer()
    await server.stop()
    const client = newClient()
    const sentence = 'The MCP server "Acme" cannot be reached: The connection to 127.0.0.1 failed (ECONNREFUSED).'
    expect((await failureOf(client.call(endpointOf(server), callOf()))).message).toBe(sentence)
    expect((await failureOf(client.discover(endpointOf(server), never()))).message).toBe(sentence)
  })

  it('is opened anew by the next call', async () => {
    const server = await newServer({ initialize: ({ status }) => status(503) })
    const client = newClient()
    expect((await failureOf(client.call(endpointOf(server), callOf()))).message).toMatch(/status 503/)
    delete server.answers.initialize
    expect(await client.call(endpointOf(server), callOf({ arguments: { a: 1 } }))).toEqual({ value: '{"a":1}' })
  })
})

describe('an address', () => {
  it.each(['127.0.0.1', '[::1]', '169.254.169.254', '0x7f000001', '[::ffff:10.0.0.1]', '2130706433', 'localhost'])(
    'that is private is refused: %s',
    async (host) => {
      const client = newClient({ allowPrivateNetwork: false })
      const endpoint = endpointOf({ url: `http://${host}:4711/mcp?key=${KEY}` })
      // Both begin together, so that a failure of one is handled while the other is awaited.
      const failures = [client.call(endpoint, callOf()), client.discover(endpoint, never())].map(failureOf)
      for (const { message } of await Promise.all(failures)) {
        expect(message).toMatch(
          /^The MCP server "Acme" cannot (be called|be reached): .* is (not on the public internet|.* metadata service)/,
        )
        expect(message).not.toContain(KEY)
      }
    },
  )

  it('is checked at each look-up of its name, not only at the first', async () => {
    const server = await newServer()
    let lookUps = 0
    const client = newClient({
      allowPrivateNetwork: false,
      resolve: async () => {
        if (++lookUps === 1) throw Object.assign(new Error('nothing'), { code: 'ENOTFOUND' })
        return [{ address: '127.0.0.1', family: 4 }]
      },
    })
    const endpoint = endpointOf({ url: `http://rebinding.example:${server.port}/mcp` })
    expect((await failureOf(client.call(endpoint, callOf()))).message).toMatch(/There is no host rebinding\.example/)
    expect((await failureOf(client.call(endpoint, callOf()))).message).toMatch(
      /rebinding\.example is not on the public internet/,
    )
    expect([lookUps, server.received]).toEqual([2, []])
  })

  it('with a password is refused without it', async () => {
    const { message } = await failureOf(
      newClient().call(endpointOf({ url: `http://user:${KEY}@example.com/` }), callOf()),
    )
    expect(message).toMatch(/cannot be called: An address with a user name or password/)
    expect(message).not.toContain(KEY)
  })
})
