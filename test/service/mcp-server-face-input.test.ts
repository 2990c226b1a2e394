import { addOwnOrganization, bearer, createApiKey, registerUser, type TestUser } from '../support/auth.ts'
import { call, createSession, expectError, type Json, waitFor } from '../support/http.ts'
import { closeFaceClients, connectToFace, createScriptedAgent, postToFace } from '../support/mcp-face.ts'
import { withService } from '../support/service.ts'
import { newOrganization, type Organization, sharedService } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
import { listTurns, MUTE } from '../support/turns.ts'

let api: Organization
let url: string
let user: TestUser
beforeAll(async () => {
  api = await newOrganization()
  url = (await sharedService('full')).url
  user = await registerUser(url)
})
afterEach(closeFaceClients)

const request = (method: string, params: object = {}, id: Json = 1) => ({ jsonrpc: '2.0', id, method, params })
const callOf = (name: string, args: unknown) => request('tools/call', { name, arguments: args })
const LIST = request('tools/list')
const PROTOCOL = 'io.modelcontextprotocol'

/** Calls a tool in the stateless protocol, with parameters that no client would send. */
const callStateless = (name: string, args: object, params: object) =>
  postToFace(
    api,
    request('tools/call', {
      name,
      arguments: args,
      ...params,
      _meta: {
        [`${PROTOCOL}/protocolVersion`]: '2026-07-28',
        [`${PROTOCOL}/clientInfo`]: { name: 'test', version: '1' },
        [`${PROTOCOL}/clientCapabilities`]: { elicitation: {} },
      },
    }),
    { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': name },
  )

/** Error of the protocol for a request that the API itself refuses. */
const refusal = (sentence: RegExp, code: string) => ({
  jsonrpc: '2.0',
  error: { code: -32000, message: expect.stringMatching(sentence), data: { code } },
  id: null,
})

describe('a caller', () => {
  it.each([
    ['no token', {}],
    ['a wrong token', bearer('nonsense')],
    ['a wrong key', bearer(`ask_${'0'.repeat(64)}`)],
  ])('with %s is told where the resource is described', async (_, headers) => {
    const answer = await postToFace(url, LIST, headers)
    expect(answer.status).toBe(401)
    expect(answer.body).toEqual(refusal(/^Authentication required$/, 'unauthenticated'))
    expect(answer.headers.get('x-should-retry')).toBe('false')
    const [, described = ''] =
      /^Bearer resource_metadata="([^"]+)"$/.exec(answer.headers.get('www-authenticate') ?? '') ?? []
    expect(described).toBe(`${url}/.well-known/oauth-protected-resource/v1/mcp`)
    const metadata = await call(url, 'GET', new URL(described).pathname)
    expect(metadata.status).toBe(200)
    expect(metadata.body).toEqual({
      resource: `${url}/v1/mcp`,
      resource_name: 'Agents',
      bearer_methods_supported: ['header'],
    })
  })

  it('is told the address that it has used, also below /api', async () => {
    const answer = await fetch(`${url}/api/v1/mcp`, { method: 'POST', body: '{}' })
    const challenge = answer.headers.get('www-authenticate')
    expect(challenge).toBe(`Bearer resource_metadata="${url}/.well-known/oauth-protected-resource/api/v1/mcp"`)
    const { body } = await call(url, 'GET', '/.well-known/oauth-protected-resource/api/v1/mcp')
    expect(body.resource).toBe(`${url}/api/v1/mcp`)
    expectError(await call(url, 'GET', '/.well-known/oauth-protected-resource/v1/agents'), 404)
  })

  it('uses a token, or an API key with or without scopes', async () => {
    const { headers } = await addOwnOrganization(url, user)
    const { name } = await createScriptedAgent(url, [{ text: 'One.' }, { text: 'Two.' }], {}, headers)
    const keyFor = async (...scopes: string[]) => bearer((await createApiKey(url, headers, { scopes })).key)
    const keys = [headers, await keyFor(), await keyFor('write'), await keyFor('faces:write')]
    for (const each of keys) {
      const { tool } = await connectToFace(url, { headers: each })
      expect((await tool('agent_start', { agent: name, message: 'Go' })).structuredContent.text).toBe('One.')
    }
    const few = await keyFor('read', 'messages:write')
    const refused = await postToFace(url, LIST, few)
    expect(refused.status).toBe(403)
    expect(refused.body).toEqual(refusal(/it would need faces:write/, 'forbidden'))
  })

  it('chooses an organization, and is not found in others', async () => {
    const stranger = await registerUser(url)
    const [mine, theirs] = [await addOwnOrganization(url, user), await addOwnOrganization(url, stranger)]
    const { name } = await createScriptedAgent(url, [], {}, mine.headers)
    const enumOf = async (headers: Record<string, string>) =>
      (await postToFace(url, LIST, headers)).body.result.tools[0].inputSchema.properties.agent.enum
    expect(await enumOf(mine.headers)).toEqual([name])
    expect(await enumOf(theirs.headers)).toBeUndefined()
    const foreign = await postToFace(url, LIST, { ...stranger.headers, 'X-Org-Id': mine.id })
    expect(foreign.status).toBe(404)
    expect(foreign.body).toEqual(refusal(/^Organization not found$/, 'not_found'))
  })
})

it('is not there when FACES leaves it out', async () => {
  await withService({ worker: false, environment: { FACES: 'ai-sdk' } }, async (service) => {
    expectError(await call(service.url, 'POST', '/v1/mcp', LIST), 404, /no route/)
    expectError(await call(service.url, 'GET', '/.well-known/oauth-protected-resource/v1/mcp'), 404)
  })
})

describe('a request', () => {
  it.each(['GET', 'DELETE', 'PUT'])('by %s is answered 405', async (method) => {
    const answer = await fetch(`${api.url}/v1/mcp`, { method, headers: api.headers })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toContain('POST')
  })

  it.each<[string, unknown, number, object]>([
    ['a batch', [LIST, LIST], 400, { error: { code: -32600 } }],
    ['a batch of a hundred calls', Array(100).fill(callOf('agent_get', {})), 400, { error: { code: -32600 } }],
    ['not a message', { hello: 'there' }, 400, { error: { code: expect.any(Number) } }],
    ['null', 'null', 400, { error: { code: expect.any(Number) } }],
    ['a number', '7', 400, { error: { code: expect.any(Number) } }],
    ['not JSON', '{', 400, { error: { code: -32600, data: { code: 'invalid' } } }],
    ['empty', '', 400, { error: { code: -32600, data: { code: 'invalid' } } }],
    [
      'nested deeply',
      `${'['.repeat(5000)}${']'.repeat(5000)}`,
      400,
      { error: { code: -32600, data: { code: 'invalid' } } },
    ],
    [
      'of 3 MiB',
      JSON.stringify(callOf('agent_start', { message: 'x'.repeat(3 << 20) })),
      413,
      { error: { code: -32000, data: { code: 'too_large' } } },
    ],
    ['for an unknown method', request('agents/rule'), 200, { error: { code: -32601 } }],
    ['for an unknown tool', callOf('agent_rule', {}), 200, { error: { code: -32602 } }],
    ['for tasks', request('tasks/get', { taskId: 'x' }), 200, { error: { code: -32601 } }],
  ])('that is %s is refused', async (_, message, status, body) => {
    const answer = await postToFace(api, message)
    expect({ status: answer.status, body: answer.body }).toMatchObject({ status, body })
    if (status !== 200) expect(answer.headers.get('x-should-retry')).toBe('false')
  })

  it('that does not accept a stream is refused', async () => {
    const answer = await postToFace(api, LIST, { Accept: 'text/html' })
    expect(answer.status).toBe(406)
  })

  it('that is a notification is accepted', async () => {
    const { status, body } = await postToFace(api, { jsonrpc: '2.0', method: 'notifications/initialized' })
    expect({ status, body }).toEqual({ status: 202, body: undefined })
  })

  it.each<[string, string, unknown, RegExp]>([
    ['no arguments', 'agent_start', undefined, /agent/],
    ['a list of arguments', 'agent_start', [], /arguments/],
    ['a wrong session', 'agent_get', { session: '../x' }, /must be session_ followed by 32/],
    ['a wrong turn', 'agent_cancel', { session: `session_${'0'.repeat(32)}`, turn: 7 }, /turn/],
    ['a long wait', 'agent_start', { agent: 'A', message: 'Go', wait_seconds: 51 }, /50/],
    ['a negative wait', 'agent_start', { agent: 'A', message: 'Go', wait_seconds: -1 }, /wait_seconds/],
    ['an empty message', 'agent_start', { agent: 'A', message: '' }, /must not be empty/],
    ['a huge message', 'agent_start', { agent: 'A', message: 'x'.repeat((1 << 20) + 1) }, /at most 1048576 bytes/],
    ['a message with a null character', 'agent_start', { agent: 'A\0', message: 'x\0' }, /./],
    [
      'too many results',
      'agent_send',
      { session: `session_${'0'.repeat(32)}`, results: Array(129).fill({ call_id: 'a' }) },
      /128/,
    ],
  ])('with %s is refused with a sentence', async (_, name, args, sentence) => {
    const { status, body } = await postToFace(api, callOf(name, args))
    expect(status).toBeLessThan(500)
    const said = body.error?.message ?? body.error ?? body.result?.content[0].text
    expect(body.result?.isError ?? true).toBe(true)
    expect(typeof said === 'string' ? said : JSON.stringify(said)).toMatch(sentence)
  })
})

describe('the state of a request that asks its user', () => {
  const stateOf = (session: string, turn: string) =>
    Buffer.from(JSON.stringify({ session, turn })).toString('base64url')
  const ARGS = { agent: 'Nobody', message: 'Go', wait_seconds: 0 }

  it.each(['', 'nonsense', stateOf('session_1', 'turn_1'), `${'A'.repeat(100_000)}`])(
    'is refused when it is forged (%#)',
    async (requestState) => {
      const { status, body } = await callStateless('agent_start', ARGS, { requestState, inputResponses: {} })
      expect(status).toBeLessThan(500)
      expect(body.error).toMatchObject({ code: -32602, message: 'Invalid or expired requestState' })
    },
  )

  it('does not lead into another organization', async () => {
    const other = await newOrganization()
    const session = await createSession(other, {})
    const { body: message } = await call(other, 'POST', `/v1/sessions/${session}/messages`, {
      message: { content: 'Go' },
    })
    const requestState = stateOf(session, message.id.replace('message_', 'turn_'))
    const inputResponses = { a: { action: 'accept', content: { approved: true } } }
    const { body } = await callStateless('agent_get', { session, wait_seconds: 0 }, { requestState, inputResponses })
    expect(body.result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/not found/) }] })
    const state = await callStateless('agent_start', ARGS, { requestState, inputResponses })
    expect(state.body.result).toMatchObject({ isError: true, content: [{ text: 'Turn not found' }] })
  })
})

describe('a call that waits', () => {
  it('needs a place among the streams before anything is created, and ends with the service', async () => {
    await withService({ sse: { maxStreamsPerOrganization: 1 } }, async (service) => {
      const { name } = await createScriptedAgent(service.url, [MUTE])
      const { tool } = await connectToFace(service.url)
      const begun = await tool('agent_start', { agent: name, message: 'Go', wait_seconds: 0 })
      const { session } = begun.structuredContent
      const stream = await openStream(service.url, `/v1/sessions/${session}/sse`)
      const full = { isError: true, content: [{ text: expect.stringMatching(/Too many open streams/) }] }
      expect(await tool('agent_start', { agent: name, message: 'Go' })).toMatchObject(full)
      expect(await tool('agent_send', { session, message: 'More' })).toMatchObject(full)
      expect((await call(service.url, 'GET', '/v1/sessions')).body.data).toHaveLength(1)
      expect(await listTurns(service.url, session)).toHaveLength(1)
      stream.close()
      const heard: Json[] = []
      const onprogress = (news: Json) => heard.push(news)
      // The place is free a moment after the stream has been closed.
      const waiting = waitFor(async () => {
        const answer = await tool('agent_get', { session, wait_seconds: 50 }, { onprogress })
        return answer.isError !== true && answer
      }, 'a place')
      await waitFor(async () => heard.length > 0, 'progress')
      const [answer] = await Promise.all([waiting, service.api.close()])
      expect(answer.structuredContent).toMatchObject({ session, status: 'active' })
    })
  })
})
