import {
  type Answer,
  call,
  createScriptedSession,
  expectError,
  expectQuota,
  type Json,
  listEvents,
  modelId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'
import { type StatelessServer, startStatelessServer } from '../support/stateless-mcp-server.ts'
import { post } from '../support/turns.ts'
import { startWebServer, type WebServer } from '../unit/lib/outgoing/web-server.ts'

const VALUE = 'value-of-a_secret-0123456789'
const OTHER = 'another_value-9876543210'
const SECRETS = '/v1/secrets'

let service: TestService
let mcp: StatelessServer
/** Answers with the headers that it gets. */
let web: WebServer
/** Redirects to `web`, with which it shares the name of its host, and not the port. */
let away: WebServer
beforeAll(async () => {
  mcp = await startStatelessServer()
  web = await startWebServer(({ url, headers }, response) => {
    if (url === '/moved') return void response.writeHead(302, { location: '/here' }).end()
    const isPage = url === '/page'
    response.writeHead(url?.startsWith('/v1/') ? 401 : 200, {
      'content-type': isPage ? 'text/html' : 'application/json',
    })
    response.end(isPage ? `<p>You sent ${headers.authorization}</p>` : JSON.stringify(headers))
  })
  away = await startWebServer((_, response) => response.writeHead(307, { location: `${web.url}/here` }).end())
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
})
afterAll(async () => {
  await service.stop()
  await Promise.all([mcp.stop(), web.stop(), away.stop()])
})

const ask = (method: string, path: string, body?: unknown): Promise<Answer> => call(service.url, method, path, body)
const put = (name: string, value: string, ...urls: string[]) =>
  ask('PUT', `${SECRETS}/${name}`, { value, hosts: urls.map((url) => new URL(url).host) })
const sentTo = (server: WebServer, path: string) => server.requests.filter(({ url }) => url === path).at(-1)?.headers
const bearer = (name: string) => ({ Authorization: `Bearer {{secret:${name}}}` })

describe('secrets of an organization', () => {
  it('are stored, listed without values, replaced and deleted', async () => {
    const stored = await ask('PUT', `${SECRETS}/B_1`, {
      value: ` ${VALUE} `,
      hosts: ['API.example.com', 'api.example.com'],
    })
    expect(stored).toMatchObject({ status: 200, body: { name: 'B_1', hosts: ['api.example.com'] } })
    await ask('PUT', `${SECRETS}/A-1`, { value: VALUE, hosts: ['*.example.com:8443'] })
    const replaced = await ask('PUT', `${SECRETS}/B_1`, { value: OTHER, hosts: ['b.example'] })
    expect(replaced.body).toMatchObject({ created_at: stored.body.created_at, hosts: ['b.example'] })
    const { body } = await ask('GET', SECRETS)
    expect(body.data.map(({ name }: Json) => name).filter((name: string) => /^[AB].1$/.test(name))).toEqual([
      'A-1',
      'B_1',
    ])
    expect(JSON.stringify(body)).not.toMatch(/value-of|another_value/)
    for (const name of ['A-1', 'B_1']) expect((await ask('DELETE', `${SECRETS}/${name}`)).status).toBe(204)
    expectError(await ask('DELETE', `${SECRETS}/A-1`), 404, 'Secret not found')
  })

  it.each<[what: string, name: string, body: object, sentence: RegExp]>([
    ['an invalid name', '1A', {}, /^name: must be a letter or _/],
    ['a name that is too long', `a${'b'.repeat(64)}`, {}, /^name: /],
    ['no value', 'A', { value: ' ' }, /^value: must not be empty/],
    ['a line break', 'A', { value: 'a\r\nX: b' }, /^value: must be printable ASCII/],
    ['a value that is too long', 'A', { value: 'a'.repeat(8193) }, /^value: must be at most 8192/],
    ['no hosts', 'A', { hosts: [] }, /^hosts: must name at least one host/],
    ['too many hosts', 'A', { hosts: Array(21).fill('a.example') }, /^hosts: /],
    ['an address instead of a host', 'A', { hosts: ['a.example', 'https://a.example'] }, /^hosts.1: must be a host/],
    ['all hosts', 'A', { hosts: ['*'] }, /^hosts.0: must be a host/],
  ])('are refused with %s', async (_, name, body, sentence) => {
    const answer = await ask('PUT', `${SECRETS}/${name}`, { value: VALUE, hosts: ['a.example'], ...body })
    expectError(answer, 400, sentence)
    expect(JSON.stringify(answer.body)).not.toContain('value-of')
  })

  it('are at most a hundred, and can be replaced then', async () => {
    const one = (name: string) => ask('PUT', `${SECRETS}/${name}`, { value: VALUE, hosts: ['a.example'] })
    await one('FIRST')
    const { db } = service.platform.deps
    const first = await db.organizationSecret.findFirstOrThrow({ where: { name: 'FIRST' } })
    const missing = 99 - (await db.organizationSecret.count({ where: { organizationId: first.organizationId } }))
    const more = Array.from({ length: missing }, (_, number) => ({ ...first, name: `MORE${number}` }))
    await db.organizationSecret.createMany({ data: more })
    const answers = await Promise.all([one('LAST'), one('TOO_MANY')])
    const [refused, ...others] = answers.filter(({ status }) => status !== 200)
    expect(others).toEqual([])
    expectQuota(refused as Answer, 'The organization has 100 secrets, which is the limit; delete one first')
    expect((await one('FIRST')).status).toBe(200)
    const names = ['FIRST', 'LAST', 'TOO_MANY', ...more.map(({ name }) => name)]
    await db.organizationSecret.deleteMany({ where: { name: { in: names } } })
  })
})

describe('a reference to a secret', () => {
  const sessionWith = (headers: object) => ({
    capabilities: [{ ref: 'web_fetch', config: { headers: { 'a.example': headers } } }],
  })
  const agentWith = (headers: object) => ({ name: 'A', system_prompt: 'Help.', ...sessionWith(headers) })
  const scheduleWith = (headers: object) => ({
    name: 'S',
    cron_expression: '0 0 1 1 *',
    target: { type: 'activity', name: 'http_request', input: { url: 'https://other.example/', headers } },
  })
  const serverWith = (headers: object) => ({ name: 'M', url: 'https://other.example/', headers })
  const providerWith = (api_key: string) => ({ name: 'P', provider_type: 'openai', api_key })

  it.each<[path: string, body: object, field: string]>([
    ['/v1/agents', agentWith({ 'X-A': '{{secret:NONE}}' }), 'capabilities.0.config.headers.a.example.X-A'],
    ['/v1/sessions', sessionWith({ 'X-A': '{{secret:NONE}}' }), 'capabilities.0.config.headers.a.example.X-A'],
    ['/v1/mcp-servers', serverWith({ 'X-A': 'a {{secret:NONE}}' }), 'headers.X-A'],
    ['/v1/mcp-servers', { ...serverWith({}), api_key: '{{secret:NONE}}' }, 'api_key'],
    ['/v1/durable/schedules', scheduleWith({ 'X-A': '{{secret:NONE}}' }), 'target.input.headers.X-A'],
    ['/v1/llm-providers', providerWith('{{secret:NONE}}'), 'api_key'],
  ])('to an unknown one is refused by POST %s', async (path, body, field) => {
    expectError(await ask('POST', path, body), 422, `${field}: there is no secret NONE; GET /v1/secrets lists them`)
    const malformed = JSON.parse(JSON.stringify(body).replace('{{secret:NONE}}', '{{secret:no.ne}}'))
    expectError(await ask('POST', path, malformed), 422, `${field}: must name a secret as {{secret:NAME}}`)
  })

  it('is refused for a URL that the secret is not for, also in a change', async () => {
    await ask('PUT', `${SECRETS}/BOUND`, { value: VALUE, hosts: ['a.example', 'b.example'] })
    const may =
      /: the secret BOUND may only be sent to a\.example, b\.example, not to https:\/\/(other\.example|api\.openai\.com); an administrator/
    const named = { 'X-A': '{{secret:BOUND}}' }
    const { id } = (await ask('POST', '/v1/mcp-servers', serverWith({}))).body
    expectError(await ask('PATCH', `/v1/mcp-servers/${id}`, { headers: named }), 422, may)
    expectError(await ask('POST', '/v1/durable/schedules', scheduleWith(named)), 422, may)
    expectError(await ask('POST', '/v1/llm-providers', providerWith('{{secret:BOUND}}')), 422, may)
    const provider = (await ask('POST', '/v1/llm-providers', providerWith('sk-1'))).body.id
    expectError(await ask('PATCH', `/v1/llm-providers/${provider}`, { api_key: '{{secret:BOUND}}' }), 422, may)
    const mixed = await ask('POST', '/v1/llm-providers', providerWith('a{{secret:BOUND}}'))
    expectError(mixed, 422, 'api_key: must be a key, or {{secret:NAME}} alone')
    expectError(await ask('POST', '/v1/agents', agentWith({ Host: 'b.example' })), 400, /must not have Host/)
    const byPath = { ...agentWith({}), capabilities: [{ ref: 'web_fetch', config: { headers: { 'a/b': {} } } }] }
    expectError(
      await ask('POST', '/v1/agents', byPath),
      400,
      /^capabilities.0.config.headers: must have headers by host/,
    )
  })

  it('is kept in an agent whose secret has been deleted', async () => {
    await ask('PUT', `${SECRETS}/GONE`, { value: VALUE, hosts: ['a.example'] })
    const agent = (await ask('POST', '/v1/agents', agentWith({ 'X-A': '{{secret:GONE}}' }))).body
    await ask('DELETE', `${SECRETS}/GONE`)
    expect((await ask('PUT', `/v1/agents/${agent.id}`, agent)).status).toBe(200)
    expect(agent.capabilities[0].config.headers).toEqual({ 'a.example': { 'X-A': '{{secret:GONE}}' } })
  })
})

/** Runs a turn that fetches pages one after the other, and returns the results. */
async function fetchPages(headers: object, ...urls: string[]): Promise<Json[]> {
  const steps = [...urls.map((url) => ({ tool_calls: [{ name: 'web_fetch', arguments: { url } }] })), { text: 'done' }]
  const agent = { capabilities: [{ ref: 'web_fetch', config: { headers } }] }
  const id = await createScriptedSession(service.url, steps, agent)
  await post(service.url, id)
  const events = await waitUntilIdle(service.url, id)
  expect(JSON.stringify(events)).not.toMatch(/value-of|another_value/)
  return events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
}

describe('web_fetch', () => {
  it('sends a secret to its host alone, and hides it where the host repeats it', async () => {
    await put('WEB', VALUE, web.url)
    const [own, page, moved, other] = await fetchPages(
      { [new URL(web.url).host]: bearer('WEB') },
      ...[`${web.url}/own`, `${web.url}/page`, `${web.url}/moved`, `${away.url}/away`],
    )
    expect(sentTo(web, '/own')).toMatchObject({ authorization: `Bearer ${VALUE}` })
    expect(JSON.stringify(own)).toContain('Bearer [secret]')
    expect(JSON.stringify(page)).toMatch(/You sent Bearer \\+\[secret/)
    expect(JSON.stringify(moved)).toContain('Bearer [secret]')
    expect(sentTo(away, '/away')).not.toHaveProperty('authorization')
    expect(other).toMatchObject({ status: 'success' })
  })

  it('does not take a secret along when it is redirected to another origin', async () => {
    await put('BOTH', VALUE, web.url, away.url)
    await fetchPages({ [new URL(away.url).host]: { ...bearer('BOTH'), 'X-Plain': 'a' } }, `${away.url}/there`)
    expect(sentTo(away, '/there')).toMatchObject({ authorization: `Bearer ${VALUE}`, 'x-plain': 'a' })
    expect(sentTo(web, '/here')).not.toHaveProperty('authorization')
    expect(sentTo(web, '/here')).not.toHaveProperty('x-plain')
  })

  it('tells the model when a secret has been deleted, or may not be sent there any more', async () => {
    await put('LATE', VALUE, web.url)
    const headers = { [new URL(web.url).host]: bearer('LATE') }
    const steps = [1, 2].flatMap(() => [
      { tool_calls: [{ name: 'web_fetch', arguments: { url: `${web.url}/late` } }] },
      { text: 'done' },
    ])
    const id = await createScriptedSession(service.url, steps, {
      capabilities: [{ ref: 'web_fetch', config: { headers } }],
    })
    await ask('PUT', `${SECRETS}/LATE`, { value: VALUE, hosts: ['b.example'] })
    await post(service.url, id)
    await waitUntilIdle(service.url, id)
    await ask('DELETE', `${SECRETS}/LATE`)
    await post(service.url, id)
    await waitUntilIdle(service.url, id)
    const results = (await listEvents(service.url, id)).filter(({ type }) => type === 'tool.completed')
    expect(results.map(({ data }) => [data.status, data.error])).toEqual([
      [
        'error',
        expect.stringMatching(
          /^The request was not sent: the secret LATE may only be sent to b\.example, not to http:/,
        ),
      ],
      ['error', 'There is no secret LATE any more; an administrator has to set it (PUT /v1/secrets/LATE).'],
    ])
    expect(sentTo(web, '/late')).toBeUndefined()
  })
})

describe('an MCP server', () => {
  it('gets secrets in its headers, in new connections as soon as they change', async () => {
    await put('MCP', VALUE, mcp.url)
    const body = { name: 'Secretive', url: mcp.url, headers: bearer('MCP') }
    const { id } = (await ask('POST', '/v1/mcp-servers', body)).body
    const read = async () => (await ask('GET', `/v1/mcp-servers/${id}`)).body
    await waitFor(async () => (await read()).tools_count !== null, 'its tools')
    expect(mcp.received.at(-1)?.headers).toMatchObject({ authorization: `Bearer ${VALUE}` })
    const step = { tool_calls: [{ name: 'mcp_secretive__echo', arguments: { name: 'Ann' } }] }
    const agent = { capabilities: [{ ref: `mcp:${toUuid(id)}` }] }
    const session = await createScriptedSession(
      service.url,
      [step, { text: '1' }, step, { text: '2' }, step, { text: '3' }],
      agent,
    )
    const run = async () => {
      await post(service.url, session)
      await waitUntilIdle(service.url, session)
      return mcp.received.filter(({ method }) => method === 'tools/call').at(-1)?.headers.authorization
    }
    expect(await run()).toBe(`Bearer ${VALUE}`)
    await put('MCP', OTHER, mcp.url)
    expect(await run()).toBe(`Bearer ${OTHER}`)
    await ask('DELETE', `${SECRETS}/MCP`)
    await run()
    const results = (await listEvents(service.url, session)).filter(({ type }) => type === 'tool.completed')
    expect(results.at(-1)?.data).toMatchObject({
      status: 'error',
      error: expect.stringMatching(/^There is no secret MCP any more/),
    })
    expect(JSON.stringify(await listEvents(service.url, session))).not.toMatch(/value-of|another_value/)
  })

  it('says why its tools cannot be read', async () => {
    await put('EARLY', VALUE, 'https://other.example', web.url)
    const body = { name: 'Unread', url: `${web.url}/unread`, api_key: '{{secret:EARLY}}' }
    const { id } = (await ask('POST', '/v1/mcp-servers', body)).body
    const read = async () => (await ask('GET', `/v1/mcp-servers/${id}`)).body.tools_error
    await waitFor(async () => (await read()) !== null, 'the failure')
    expect(sentTo(web, '/unread')).toMatchObject({ authorization: `Bearer ${VALUE}` })
    await ask('DELETE', `${SECRETS}/EARLY`)
    await ask('PATCH', `/v1/mcp-servers/${id}`, { headers: { 'X-A': 'b' } })
    await waitFor(async () => /^There is no secret EARLY any more/.test(await read()), 'the reason')
  })
})

describe('a schedule', () => {
  it('sends a secret, hides it in the answer, and fails without it', async () => {
    await put('CRON', VALUE, web.url)
    const target = {
      type: 'activity',
      name: 'http_request',
      input: { url: `${web.url}/cron`, headers: { 'X-Key': 'a{{secret:CRON}}b' } },
    }
    const schedule = { name: 'With a secret', cron_expression: '0 0 1 1 *', enabled: false, target }
    const { id } = (await ask('POST', '/v1/durable/schedules', schedule)).body
    const run = async () => {
      const { execution_id } = (await ask('POST', `/v1/durable/schedules/${id}/trigger`)).body
      const read = async () => (await ask('GET', `/v1/durable/executions/${execution_id}`)).body
      await waitFor(async () => ['completed', 'failed'].includes((await read()).status), 'its end')
      return read()
    }
    const done = await run()
    expect(sentTo(web, '/cron')).toMatchObject({ 'x-key': `a${VALUE}b` })
    expect(done).toMatchObject({ status: 'completed', answer: expect.stringContaining('[hidden]') })
    expect(done.answer).not.toContain(VALUE)
    await ask('DELETE', `${SECRETS}/CRON`)
    expect(await run()).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^There is no secret CRON any more/),
    })
  })
})

describe('a provider', () => {
  it('is called with the secret that its key names, as it is at the time', async () => {
    await put('LLM', VALUE, web.url)
    const body = {
      name: 'Keyed',
      provider_type: 'openai_completions',
      base_url: `${web.url}/v1`,
      api_key: '{{secret:LLM}}',
    }
    const provider = (await ask('POST', '/v1/llm-providers', body)).body
    expect(provider).toMatchObject({ api_key_set: true })
    const added = await ask('POST', `/v1/llm-providers/${provider.id}/models`, {
      model_id: 'gpt-5-mini',
      display_name: 'Mini',
    })
    const session = (await ask('POST', '/v1/sessions', { model_id: added.body.id })).body.id
    const run = async () => {
      await post(service.url, session)
      const events = await waitUntilIdle(service.url, session)
      expect(JSON.stringify(events)).not.toMatch(/value-of|another_value/)
      return events.filter(({ type }) => type === 'turn.failed').at(-1)?.data.error
    }
    await run()
    expect(sentTo(web, '/v1/chat/completions')).toMatchObject({ authorization: `Bearer ${VALUE}` })
    await put('LLM', OTHER, web.url)
    await run()
    expect(sentTo(web, '/v1/chat/completions')).toMatchObject({ authorization: `Bearer ${OTHER}` })
    expect((await ask('POST', `/v1/llm-providers/${provider.id}/sync-models`)).status).toBe(502)
    expect(sentTo(web, '/v1/models')).toMatchObject({ authorization: `Bearer ${OTHER}` })
    await ask('PUT', `${SECRETS}/LLM`, { value: OTHER, hosts: ['b.example'] })
    expect(await run()).toMatch(/the secret LLM may only be sent to b\.example/)
    const sync = await ask('POST', `/v1/llm-providers/${provider.id}/sync-models`)
    expectError(sync, 409, /the secret LLM may only be sent to b\.example/)
    await ask('DELETE', `${SECRETS}/LLM`)
    expect(await run()).toMatch(/^There is no secret LLM any more/)
    // A key of its own again.
    await ask('PATCH', `/v1/llm-providers/${provider.id}`, { api_key: 'sk-own' })
    await run()
    expect(sentTo(web, '/v1/chat/completions')).toMatchObject({ authorization: 'Bearer sk-own' })
    expect(await modelId(service.url, 'gpt-5-mini')).toBe(added.body.id)
  })
})
