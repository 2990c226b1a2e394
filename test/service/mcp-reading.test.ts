import { startEverythingServer } from '../support/everything-server.ts'
import { type HostileServer, type Received, startHostileServer } from '../support/hostile-mcp-server.ts'
import { call, expectError, type Json, waitFor } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'
import { startStatelessServer } from '../support/stateless-mcp-server.ts'

const KEY = 'sk-this-is-a-key-of-a-test-0123456789'

let service: TestService
let everything: Awaited<ReturnType<typeof startEverythingServer>>
let hostile: HostileServer
/** Paths of the two servers. */
let reference: string
let other: string
beforeAll(async () => {
  ;[everything, hostile] = await Promise.all([startEverythingServer(), startHostileServer()])
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  reference = await add('Everything', everything.url)
  other = await add('Hostile', hostile.url, { headers: { 'X-Key': '{{secret:KEY}}' } })
})
afterAll(async () => {
  await service.stop()
  await Promise.all([everything.stop(), hostile.stop()])
})
beforeEach(() => {
  for (const method of Object.keys(hostile.answers)) delete hostile.answers[method]
  hostile.answers.initialize = ({ params, reply }) =>
    reply({
      protocolVersion: params.protocolVersion,
      capabilities: { resources: {}, prompts: {} },
      serverInfo: { name: 'hostile', version: '1' },
    })
})

async function add(name: string, url: string, more: object = {}): Promise<string> {
  const secret = { value: KEY, hosts: [new URL(hostile.url).host] }
  await call(service.url, 'PUT', '/v1/secrets/KEY', secret)
  const { body } = await call(service.url, 'POST', '/v1/mcp-servers', { name, url, ...more })
  return `/v1/mcp-servers/${body.id}`
}

const get = (path: string) => call(service.url, 'GET', path)
const read = (server: string, uri: string) => get(`${server}/resources/read?uri=${encodeURIComponent(uri)}`)
const prompt = (server: string, body: object) => call(service.url, 'POST', `${server}/prompts/get`, body)
const replyWith = (result: object) => (request: Received) => request.reply(result)

describe('resources and prompts of the reference server', () => {
  it('are listed, with templates and arguments', async () => {
    const { body: resources } = await get(`${reference}/resources`)
    expect(resources).toMatchObject({ templates: expect.any(Array), complete: true })
    expect(resources.data).toContainEqual(
      expect.objectContaining({
        uri: expect.stringMatching(/^demo:/),
        name: expect.any(String),
        mime_type: 'text/markdown',
      }),
    )
    expect(resources.templates.map((one: Json) => one.uri_template)).toContain(
      'demo://resource/dynamic/text/{resourceId}',
    )
    const { body: prompts } = await get(`${reference}/prompts`)
    expect(prompts.complete).toBe(true)
    expect(prompts.data.find(({ name }: Json) => name === 'args-prompt')).toMatchObject({
      title: 'Arguments Prompt',
      arguments: [
        { name: 'city', required: true },
        { name: 'state', required: false },
      ],
    })
  })

  it('are read as texts and bytes, and prompts with their arguments', async () => {
    const [listed] = (await get(`${reference}/resources`)).body.data
    expect((await read(reference, listed.uri)).body.contents).toMatchObject([
      { uri: listed.uri, text: expect.any(String) },
    ])
    const uri = 'demo://resource/dynamic/blob/1'
    expect((await read(reference, uri)).body).toMatchObject({ contents: [{ uri, blob: expect.any(String) }] })
    const asked = { name: 'args-prompt', arguments: { city: 'Berlin' } }
    expect(await prompt(reference, asked)).toMatchObject({
      status: 200,
      body: { messages: [{ role: 'user', content: { type: 'text', text: "What's weather in Berlin?" } }] },
    })
    const embedding = { name: 'resource-prompt', arguments: { resourceType: 'Text', resourceId: '1' } }
    const { messages } = (await prompt(reference, embedding)).body
    expect(messages.at(-1).content).toMatchObject({ type: 'resource', uri: expect.stringMatching(/text\/1$/) })
  })

  it('are refused with words when they do not exist or lack arguments', async () => {
    expectError(await read(reference, 'demo://missing'), 404, 'Resource of the MCP server not found')
    expectError(await prompt(reference, { name: 'missing' }), 404, 'Prompt of the MCP server not found')
    expectError(await prompt(reference, { name: 'args-prompt' }), 400, /^arguments: must fit the prompt/)
    expectError(await get(`${reference}/resources/read`), 400, /^uri: /)
  })

  it('are not asked for while the server is disabled', async () => {
    const path = await add('Disabled', everything.url)
    await call(service.url, 'PATCH', path, { status: 'disabled' })
    expectError(await get(`${path}/prompts`), 409, /is disabled/)
  })
})

it('reads from a stateless server, and refuses its questions', async () => {
  const server = await startStatelessServer()
  const path = await add('Stateless', server.url)
  expect((await get(`${path}/resources`)).body).toMatchObject({ data: [{ uri: 'demo:note', name: 'note' }] })
  expect((await read(path, 'demo:note')).body).toEqual({ contents: [{ uri: 'demo:note', text: 'A note.' }] })
  expectError(await read(path, 'demo:other'), 404)
  expect((await get(`${path}/prompts`)).body.data).toEqual([{ name: 'ask', arguments: [] }])
  expectError(await prompt(path, { name: 'ask' }), 502, /asks its user a question here/)
  await server.stop()
})

describe('a server that answers as it likes', () => {
  it('has empty lists where it offers nothing', async () => {
    delete hostile.answers.initialize
    const before = hostile.of('resources/read').length
    expect((await get(`${other}/resources`)).body).toEqual({ data: [], templates: [], complete: true })
    expect((await get(`${other}/prompts`)).body).toEqual({ data: [], complete: true })
    expectError(await read(other, 'a:b'), 404)
    expectError(await prompt(other, { name: 'a' }), 404)
    expect(hostile.of('resources/read')).toHaveLength(before)
  })

  it('has a list up to the limits, cleaned and without secrets', async () => {
    const good = { uri: 'a:b', name: `N\0 ${KEY}`, description: 'é'.repeat(2000) }
    const bad = [null, { name: 'no address' }, { uri: `a:${KEY}` }, { uri: 'a'.repeat(3000) }]
    hostile.answers['resources/list'] = replyWith({ resources: [...bad, good] })
    hostile.answers['resources/templates/list'] = ({ fail }) => fail(-32_601, 'Method not found')
    expect((await get(`${other}/resources`)).body).toEqual({
      data: [{ uri: 'a:b', name: 'N [hidden]', description: 'é'.repeat(512) }],
      templates: [],
      complete: false,
    })
    expect(hostile.of('resources/list').at(-1)?.headers['x-key']).toBe(KEY)
    const page = Array.from({ length: 600 }, (_, at) => ({ name: `p${at}` }))
    hostile.answers['prompts/list'] = replyWith({ prompts: page, nextCursor: 'on' })
    const { data, complete } = (await get(`${other}/prompts`)).body
    expect([data.length, complete]).toEqual([1000, false])
  })

  it('hides secrets in contents and messages', async () => {
    hostile.answers['resources/read'] = replyWith({ contents: [{ uri: 'a:b', text: `\0It is ${KEY}` }] })
    expect((await read(other, 'a:b')).body).toEqual({ contents: [{ uri: 'a:b', text: 'It is [hidden]' }] })
    const content = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
    hostile.answers['prompts/get'] = replyWith({ messages: [{ role: 'user', content }] })
    const shown = { type: 'image', data: 'AAAA', mime_type: 'image/png' }
    expect((await prompt(other, { name: 'a' })).body).toEqual({ messages: [{ role: 'user', content: shown }] })
  })

  it.each<[what: string, answer: (request: Received) => void, sentence: RegExp]>([
    [
      'an error',
      ({ fail }) => fail(-32_603, `Broken ${KEY}`),
      /^The MCP server "Hostile" refused .*: Broken \[hidden\]$/,
    ],
    [
      'a status',
      ({ status }) => status(500, 'Oh', { 'content-type': 'text/plain' }),
      /answered with the status 500: Oh$/,
    ],
    ['no contents', replyWith({}), /sent a result that the protocol does not allow/],
    ['text and bytes', replyWith({ contents: [{ uri: 'a:b', text: '', blob: '' }] }), /protocol does not allow/],
    ['a long text', replyWith({ contents: [{ uri: 'a:b', text: 'a'.repeat(2 ** 20) }] }), /sent more than 1 MiB/],
    [
      'too many bytes',
      replyWith({ contents: [{ text: 'a'.repeat(5 * 2 ** 20) }] }),
      /sent a resource in more than 4 MiB/,
    ],
    ['a page', ({ status }) => status(200, '<html>'), /is this its MCP address/],
  ])('fails with 502 and the reason for %s', async (_, answer, sentence) => {
    hostile.answers['resources/read'] = answer
    expectError(await read(other, 'a:b'), 502, sentence)
  })

  it('is given up when the caller goes away, and waits of one owner are limited', async () => {
    const waiting: Received[] = []
    hostile.answers['prompts/list'] = (request) => void waiting.push(request)
    const gone = new AbortController()
    const asked = Array.from({ length: 5 }, () =>
      fetch(`${service.url}${other}/prompts`, { signal: gone.signal }).catch(() => {}),
    )
    await waitFor(async () => waiting.length >= 4, 'four requests at the server')
    hostile.answers['prompts/list'] = replyWith({ prompts: [] })
    gone.abort()
    await Promise.all([...asked, ...waiting.map(({ ended }) => ended)])
    expect((await get(`${other}/prompts`)).status).toBe(200)
    expect(waiting).toHaveLength(4)
  })
})
