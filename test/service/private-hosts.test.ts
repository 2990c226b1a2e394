import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  modelId,
  waitFor,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { type NameServer, startNameServer } from '../support/name-server.ts'
import { request, scheduleCalls } from '../support/schedules.ts'
import { startService, type TestService } from '../support/service.ts'
import { type StatelessServer, startStatelessServer } from '../support/stateless-mcp-server.ts'
import { post, waitForEvent } from '../support/turns.ts'

const PUBLIC = '93.184.215.14'
const LISTED = '127.0.0.1'
const UNLISTED = '127.0.0.2'
const REFUSED = /is not on the public internet; .* ALLOWED_PRIVATE_HOSTS .* ALLOW_PRIVATE_NETWORK/

let names: NameServer
let mcp: StatelessServer
let web: Server
let arrived: string[]
/** Addresses that the requests which `arrived` were sent to. */
let reached: (string | undefined)[]
/** JSON that `web` answers with, by paths. */
const answers: Record<string, object> = {}
/** Stands for the machines of a private network at all addresses of this one. */
let port: number
beforeAll(async () => {
  names = startNameServer()
  mcp = await startStatelessServer('0.0.0.0')
  web = createServer((incoming, response) => {
    arrived.push(`${incoming.headers.host}${incoming.url}`)
    reached.push(incoming.socket.localAddress)
    const json = answers[incoming.url ?? '']
    const type = json === undefined ? 'text/plain' : 'application/json'
    response.writeHead(200, { 'content-type': type, connection: 'close' })
    response.end(json === undefined ? 'Hello' : JSON.stringify(json))
  })
  await new Promise<void>((resolve) => {
    web.listen(0, '0.0.0.0', resolve)
  })
  port = (web.address() as AddressInfo).port
})
beforeEach(() => {
  arrived = []
  reached = []
})
afterAll(async () => {
  names.stop()
  await mcp.stop()
  web.close()
})

/** Returns the error of an execution of a schedule that requests a URL. */
async function errorOfSchedule(service: TestService, url: string): Promise<string> {
  const { addSchedule, read } = scheduleCalls(() => ({ ...service, headers: {} }) as never)
  const path = await addSchedule({ target: request({ url }) })
  const { execution_id } = (await call(service.url, 'POST', `${path}/trigger`)).body
  const execution = await waitFor(async () => {
    const one = await read(`/v1/durable/executions/${execution_id}`)
    return ['completed', 'failed'].includes(one.status) && one
  }, 'the execution')
  return execution.error
}

let number = 0
/** Returns the error of a turn whose model is at a URL. */
async function errorOfProvider(service: TestService, base_url: string): Promise<string> {
  const provider = { name: `P${++number}`, provider_type: 'openai_completions', base_url, api_key: 'sk-0123456789' }
  const { id } = (await call(service.url, 'POST', '/v1/llm-providers', provider)).body
  const model = { model_id: 'm', display_name: 'M' }
  const default_model_id = (await call(service.url, 'POST', `/v1/llm-providers/${id}/models`, model)).body.id
  const session = await createSession(service.url, { default_model_id })
  await post(service.url, session)
  const events = await waitForEvent(service.url, session, 'turn.failed')
  return events.find(({ type }) => type === 'turn.failed')?.data.error
}

const resultsOf = async (service: TestService, id: string): Promise<Json[]> =>
  (await listEvents(service.url, id)).filter(({ type }) => type === 'tool.completed').map(({ data }) => data)

/** Returns the results of calling tools one after the other. */
async function callTools(service: TestService, agent: object, calls: { name: string; arguments: object }[]) {
  const steps: object[] = calls.map((one, at) => ({ tool_calls: [{ id: `call_${at}`, ...one }] }))
  const id = await createScriptedSession(service.url, [...steps, { text: 'done' }], agent)
  await post(service.url, id)
  await waitForEvent(service.url, id, 'turn.completed')
  return resultsOf(service, id)
}

/** Adds an MCP server and returns its ref, as soon as its tools are known. */
async function addServer(service: TestService, name: string, url: string): Promise<string> {
  const { id } = (await call(service.url, 'POST', '/v1/mcp-servers', { name, url })).body
  await waitFor(
    async () => (await call(service.url, 'GET', `/v1/mcp-servers/${id}`)).body.tools_count !== null,
    'its tools',
  )
  return `mcp:${toUuid(id)}`
}

describe('where some private hosts are allowed', () => {
  let service: TestService
  beforeAll(async () => {
    const mcpPort = new URL(mcp.url).port
    const hosts = `${LISTED}:${port}, ${LISTED}:${mcpPort}, named.example`
    service = await startService({ environment: { ALLOWED_PRIVATE_HOSTS: hosts } })
  })
  afterAll(() => service.stop())

  it('they are called, by name and by address', async () => {
    names.answer('named.example', UNLISTED)
    names.answer('elsewhere.example', LISTED)
    const urls = [`http://named.example:${port}/a`, `http://elsewhere.example:${port}/b`, `http://${LISTED}:${port}/c`]
    const calls = urls.map((url) => ({ name: 'web_fetch', arguments: { url } }))
    const results = await callTools(service, { capabilities: [{ ref: 'web_fetch' }] }, calls)
    expect(results.map(({ status }) => status)).toEqual(['success', 'success', 'success'])
    expect(arrived).toEqual([`named.example:${port}/a`, `elsewhere.example:${port}/b`, `${LISTED}:${port}/c`])
  })

  it.each([
    ['/v1/mcp-servers', 'url', { name: 'Private' }],
    ['/v1/llm-providers', 'base_url', { name: 'Private', provider_type: 'openai' }],
  ])('POST %s refuses another one and names the setting', async (path, field, body) => {
    const answer = await call(service.url, 'POST', path, { ...body, [field]: `http://${UNLISTED}:${port}/` })
    expectError(answer, 400, new RegExp(`^${field}: ${UNLISTED} ${REFUSED.source}`))
  })

  it('a schedule does not call a name that has become private since it was written', async () => {
    names.answer('schedule.example', PUBLIC, UNLISTED)
    expect(await errorOfSchedule(service, `http://schedule.example:${port}/`)).toMatch(REFUSED)
    expect(arrived).toEqual([])
  })

  it('a turn does not call a provider whose name has become private', async () => {
    names.answer('provider.example', PUBLIC, UNLISTED)
    expect(await errorOfProvider(service, `http://provider.example:${port}/v1`)).toMatch(REFUSED)
    expect(arrived).toEqual([])
  })

  it('web_fetch does not call a name again that has become private', async () => {
    names.answer('page.example', LISTED, UNLISTED)
    const fetch = { name: 'web_fetch', arguments: { url: `http://page.example:${port}/` } }
    const results = await callTools(service, { capabilities: [{ ref: 'web_fetch' }] }, [fetch, fetch])
    expect(results.map(({ status }) => status)).toEqual(['success', 'error'])
    expect(results[1]?.error).toMatch(REFUSED)
    // The connection went to the address that was checked, not to the next answer of the name server.
    expect(reached).toEqual([LISTED])
  })

  it('an MCP call does not go to a name that has become private since its tools were read', async () => {
    names.answer('mcp.example', LISTED)
    const ref = await addServer(service, 'Rebound', mcp.url.replace('127.0.0.1', 'mcp.example'))
    mcp.closeConnections()
    names.answer('mcp.example', UNLISTED)
    const before = mcp.received.length
    const call = { name: 'mcp_rebound__echo', arguments: { name: 'Ann' } }
    const [result] = await callTools(service, { capabilities: [{ ref }] }, [call])
    expect(result?.error).toMatch(REFUSED)
    expect(mcp.received).toHaveLength(before)
  })
})

describe('where a name has become private since it was checked', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startService({ environment: { ALLOWED_PRIVATE_HOSTS: `${LISTED}:${port}` } })
  })
  afterAll(() => service.stop())

  const origin = (name: string) => `http://${name}:${port}`
  const stored = async (path: string, body: object): Promise<Json> => {
    const { status, body: made } = await call(service.url, 'POST', path, body)
    expect({ status, made }).toMatchObject({ status: 201 })
    return made
  }

  it('a webhook does not connect', async () => {
    names.answer('hook.example', PUBLIC, UNLISTED)
    const { id } = await stored('/v1/webhooks', { url: `${origin('hook.example')}/`, events: ['turn.completed'] })
    await post(service.url, await createScriptedSession(service.url, [{ text: 'done' }]))
    const delivery = await waitFor(async () => {
      const [one] = (await call(service.url, 'GET', `/v1/webhooks/${id}/deliveries`)).body.data
      return one?.error != null && one
    }, 'an attempt')
    expect(delivery.error).toMatch(REFUSED)
    expect(arrived).toEqual([])
  })

  it('an image of a message is not fetched', async () => {
    names.answer('image.example', LISTED, UNLISTED)
    const session = await createSession(service.url, { default_model_id: await modelId(service.url, 'llmsim-echo') })
    const send = (path: string) => {
      const content = [{ type: 'image', url: `${origin('image.example')}${path}` }]
      return call(service.url, 'POST', `/v1/sessions/${session}/messages?wait=60`, { message: { content } })
    }
    await send('/a.png')
    expect(arrived).toHaveLength(1)
    expect((await send('/b.png')).body.output.content[0].text).toMatch(REFUSED)
    expect(arrived).toHaveLength(1)
  })

  it('the models of a provider are not listed', async () => {
    names.answer('list.example', PUBLIC, UNLISTED)
    const base_url = `${origin('list.example')}/v1`
    const provider = { name: 'List', provider_type: 'openai_completions', base_url, api_key: 'sk-0123456789' }
    const { id } = await stored('/v1/llm-providers', provider)
    const answer = await call(service.url, 'POST', `/v1/llm-providers/${id}/sync-models`)
    expect([answer.status, answer.body.error]).toEqual([502, expect.stringMatching(REFUSED)])
    expect(arrived).toEqual([])
  })

  /** Adds an MCP server at a listed address, whose metadata name an authorization server. */
  async function addProtected(name: string, authorization: string): Promise<Json> {
    names.answer(name, LISTED)
    answers['/.well-known/oauth-protected-resource/mcp'] = {
      resource: `${origin(name)}/mcp`,
      authorization_servers: [origin(authorization)],
    }
    answers['/.well-known/oauth-authorization-server'] = {
      issuer: origin(authorization),
      authorization_endpoint: `${origin(authorization)}/authorize`,
      token_endpoint: `https://token.example:${port}/token`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
    }
    const oauth = { as: 'organization', client_id: 'ours' }
    const { id } = await stored('/v1/mcp-servers', { name, url: `${origin(name)}/mcp`, oauth })
    return call(service.url, 'POST', `/v1/mcp-servers/${id}/connect`)
  }
  const arrivedAt = (name: string) => arrived.filter((one) => one.startsWith(`${name}:`))

  it('the metadata of an authorization server are not read', async () => {
    names.answer('auth-a.example', UNLISTED)
    const { status, body } = await addProtected('mcp-a.example', 'auth-a.example')
    expect([status, body.error]).toEqual([502, expect.stringMatching(REFUSED)])
    expect(arrivedAt('auth-a.example')).toEqual([])
  })

  it('a code is not exchanged for a token', async () => {
    names.answer('auth-b.example', LISTED)
    names.answer('token.example', UNLISTED)
    const { body } = await addProtected('mcp-b.example', 'auth-b.example')
    const state = new URL(body.authorization_url).searchParams.get('state')
    const done = await call(service.url, 'GET', `/v1/mcp-sign-in/callback?code=secret&state=${state}`)
    expect([done.status, done.body.error]).toEqual([502, expect.stringMatching(REFUSED)])
    expect(arrivedAt('token.example')).toEqual([])
  })
})

describe('where all private networks are allowed', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true', ALLOWED_PRIVATE_HOSTS: '0.0.0.0/0' } })
  })
  afterAll(() => service.stop())

  it.each([
    ['the service itself', () => service.url, /address of this service itself, which is never called/],
    ['the service itself by name', () => service.url.replace('127.0.0.1', 'localhost'), /of this service itself/],
    ['the metadata of a cloud', () => 'http://169.254.169.254/latest', /metadata service, which is never called/],
    ['its name', () => 'http://metadata.google.internal/computeMetadata/v1', /metadata service, which is never called/],
  ])('%s is refused when it is written', async (_, urlOf, sentence) => {
    expectError(await call(service.url, 'POST', '/v1/mcp-servers', { name: 'Own', url: urlOf() }), 400, sentence)
  })

  it.each([
    ['the service itself', () => Number(new URL(service.url).port), LISTED, /address of this service itself/],
    ['the metadata of a cloud', () => 80, '169.254.169.254', /metadata service, which is never called/],
  ])('%s is not called by a name that leads there', async (_, portOf, address, sentence) => {
    names.answer('own.example', address)
    const url = `http://own.example:${portOf()}/health`
    expect(await errorOfSchedule(service, url)).toMatch(sentence)
    expect(await errorOfProvider(service, url)).toMatch(sentence)
    const agent = { capabilities: [{ ref: 'web_fetch' }] }
    const [result] = await callTools(service, agent, [{ name: 'web_fetch', arguments: { url } }])
    expect(result?.error).toMatch(sentence)
  })

  it('web_fetch does not follow a redirect to the service itself', async () => {
    const redirecting = createServer((_, response) => response.writeHead(302, { location: service.url }).end())
    await new Promise<void>((resolve) => {
      redirecting.listen(0, '127.0.0.1', resolve)
    })
    const url = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}/`
    const agent = { capabilities: [{ ref: 'web_fetch' }] }
    const [result] = await callTools(service, agent, [{ name: 'web_fetch', arguments: { url } }])
    redirecting.close()
    expect(result?.error).toMatch(/address of this service itself/)
  })

  it('another process of the service refuses what this one sends, wherever it is', async () => {
    const { url } = await service.startPeer()
    const agent = { capabilities: [{ ref: 'web_fetch' }] }
    const calls = [{ name: 'web_fetch', arguments: { url: `${url}/health` } }]
    const [result] = await callTools(service, agent, calls)
    expect(JSON.stringify(result)).toMatch(/403/)
    expect(await errorOfProvider(service, url)).toMatch(/403.*the service itself|the service itself/)
    expect(await errorOfSchedule(service, `${url}/health`)).toMatch(/403/)
    expect((await call(url, 'GET', '/health')).status).toBe(200)
  })
})
