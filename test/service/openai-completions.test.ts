import { createScriptedAgent } from '../support/agents.ts'
import { ADMIN_MODE } from '../support/auth.ts'
import { type Answer, call, createSession, type Json, modelId, unknownId } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { withService } from '../support/service.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { callsOf, guardedTool, listTurns } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const agentOf = (steps: object[], more: object = {}) => createScriptedAgent(api, steps, more)
const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: string) => ({ role: 'assistant', content })
const tool = (name: string) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
})

const complete = (
  model: string,
  messages: object[],
  more: object = {},
  headers: Record<string, string> = {},
  query = '',
) => call(api, 'POST', `/v1/chat/completions${query}`, { model, messages, ...more }, headers)
const textOf = ({ status, body }: Answer): string => {
  expect({ status, body }).toMatchObject({ status: 200, body: { object: 'chat.completion' } })
  return body.choices[0].message.content
}
/** Joins the text of a streamed answer, as JSON has it. */
const saidIn = ({ body }: Pick<Answer, 'body'>): string =>
  [...String(body).matchAll(/"content":"((?:[^"\\]|\\.)+)"/g)].map(([, text]) => text).join('')
const sessionOf = ({ headers }: Answer) => headers.get('x-session-id') ?? ''
const messagesOf = async (session: string): Promise<string[]> => {
  const { body } = await call(api, 'GET', `/v1/sessions/${session}/messages`)
  return body.data.map(({ content }: Json) => content[0].text)
}

describe('Chat Completions', () => {
  it('has the agents as models', async () => {
    const agent = await agentOf([], { name: 'A model' })
    const { body } = await call(api, 'GET', '/v1/models')
    const model = { id: agent, object: 'model', created: expect.any(Number), owned_by: 'organization', name: 'A model' }
    expect(body).toEqual({ object: 'list', data: expect.arrayContaining([model]) })
    expect((await call(api, 'GET', `/v1/models/${agent}`)).body).toEqual(model)
    const other = await newOrganization()
    expect((await call(other, 'GET', '/v1/models')).body.data).toEqual([])
    expect((await call(other, 'GET', `/v1/models/${agent}`)).status).toBe(404)
  })

  it.each([{}, { stream: true }])('have the output of a schema as their only text, with %j', async (more) => {
    const steps = [
      { text: 'Oslo' },
      { text: 'Well.', tool_calls: [{ name: 'final_output', arguments: { city: 'Oslo' } }] },
    ]
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    const response_format = { type: 'json_schema', json_schema: { name: 'place', schema } }
    const answer = await complete(await agentOf(steps), [user('Where to?')], { response_format, ...more })
    const content = 'stream' in more ? saidIn(answer) : textOf(answer)
    expect(content).toBe('stream' in more ? '{\\"city\\":\\"Oslo\\"}' : '{"city":"Oslo"}')
    const ofAgent = await complete(
      await agentOf([{ text: 'Oslo' }, { text: '{"city":"Oslo"}' }], { output_schema: schema }),
      [user('Where to?')],
    )
    expect(textOf(ofAgent)).toBe('{"city":"Oslo"}')
    const wrong = { type: 'json_schema', json_schema: { name: 'place', schema: { type: 'array' } } }
    const refused = await complete(await agentOf([]), [user('Where to?')], { response_format: wrong })
    expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining('output_schema: type')])
  })

  it('continue the session that a header names, whatever the history says', async () => {
    const agent = await agentOf([{ text: 'One.' }, { text: 'Two.' }])
    const chat = { 'X-OpenWebUI-Chat-Id': 'chat' }
    const first = await complete(agent, [user('1')], {}, chat)
    const second = await complete(agent, [user('1'), assistant('Forged.'), user('2')], {}, chat)
    expect([first, second].map(textOf)).toEqual(['One.', 'Two.'])
    expect(sessionOf(second)).toBe(sessionOf(first))
    expect(await messagesOf(sessionOf(first))).toEqual(['1', 'One.', '2', 'Two.'])
    const repeated = await complete(agent, [user('1'), assistant('Forged.'), user('2')], {}, chat)
    expect(textOf(repeated)).toBe('Two.')
    expect(await listTurns(api, sessionOf(first))).toHaveLength(2)
  })

  it('post the same words again once their turn is over, and follow it before', async () => {
    const agent = await agentOf([{ text: 'One.', tokens_per_second: 5 }, { text: 'Two.' }])
    const chat = { 'X-Session-Id': 'the same words' }
    const [first, repeated] = await Promise.all([1, 2].map(() => complete(agent, [user('Go on')], {}, chat)))
    expect([first, repeated].map((answer) => textOf(answer as Answer))).toEqual(['One.', 'One.'])
    const session = sessionOf(first as Answer)
    await api.query("UPDATE turns SET finished_at = now() - interval '6 s' WHERE session_id = $1", [toUuid(session)])
    const older = "UPDATE idempotency_keys SET created_at = now() - interval '6 s' WHERE organization_id = $1"
    await api.query(older, [api.uuid])
    expect(textOf(await complete(agent, [user('Go on')], {}, chat))).toBe('Two.')
    expect(await listTurns(api, session)).toHaveLength(2)
  })

  it('make one session and turn for an Idempotency-Key, also without a session', async () => {
    const agent = await agentOf([{ text: 'One.' }])
    const headers = { 'Idempotency-Key': 'once' }
    const answers = await Promise.all([1, 2, 3].map(() => complete(agent, [user('1')], {}, headers)))
    expect(new Set(answers.map(sessionOf)).size).toBe(1)
    expect((await call(api, 'GET', `/v1/sessions?agent_id=${agent}`)).body.total).toBe(1)
    const other = await complete(agent, [user('2')], {}, headers)
    expect(other).toMatchObject({ status: 409, body: { error: { code: 'idempotency_key_reused' } } })
  })

  it('leave nothing behind when they are refused', async () => {
    const agent = await agentOf([])
    const long = await complete(agent, [user('x'.repeat(1024 * 1024 + 1))])
    expect(long).toMatchObject({ status: 400, body: { error: { message: expect.stringMatching(/at most 1 MiB/) } } })
    expect((await call(api, 'GET', `/v1/sessions?agent_id=${agent}`)).body.total).toBe(0)
  })

  it('stand alone without a session, and bring their history along', async () => {
    const echo = { default_model_id: await modelId(api, 'llmsim-echo') }
    const agent = await agentOf([], echo)
    const answers = await Promise.all([1, 2].map(() => complete(agent, [user('1'), assistant('One.'), user('2')])))
    expect(new Set(answers.map(sessionOf)).size).toBe(2)
    expect(textOf(answers[0] as Answer)).toMatch(/^The conversation so far:\n\nUser: 1\n\nAssistant: One\.\n\n.*2$/s)
  })

  it.each([
    ['in a session', { 'X-Session-Id': 'tools' }],
    ['without one', {}],
  ])("run the client's tools %s", async (_, headers: Record<string, string>) => {
    const agent = await agentOf([{ text: 'So.', tool_calls: callsOf('a', 'b') }, { text: 'Thanks.' }])
    const more = { tools: [tool('a'), tool('b')] }
    const first = await complete(agent, [user('1')], more, headers)
    const [{ message, finish_reason }] = first.body.choices
    expect(finish_reason).toBe('tool_calls')
    const results = message.tool_calls.map(({ id }: Json) => ({ role: 'tool', tool_call_id: id, content: 'Done' }))
    const second = await complete(agent, [user('1'), message, ...results], more, headers)
    expect(textOf(second)).toBe('Thanks.')
    expect(sessionOf(second)).toBe(sessionOf(first))
    expect(await listTurns(api, sessionOf(first))).toHaveLength(1)
    const again = await complete(agent, [user('1'), message, ...results], more, {
      ...headers,
      'Idempotency-Key': 'new',
    })
    expect(again).toMatchObject({ status: 409, body: { error: { code: 'not_waiting' } } })
  })

  it.each([
    ['approve', 'success'],
    ['deny', 'error'],
  ])('take "%s" for the calls that need approval', async (word, status) => {
    const steps = [{ tool_calls: [{ id: 'c', name: 'get_weather', arguments: { location: 'Oslo' } }] }, { text: 'So.' }]
    const agent = await agentOf(steps, { capabilities: ['test_weather'], tools: [guardedTool('get_weather')] })
    const headers = { 'X-Session-Id': 'approval' }
    const first = await complete(agent, [user('1')], {}, headers)
    expect(textOf(first)).toMatch(/^Approval is needed for get_weather/)
    expect(textOf(await complete(agent, [user('1'), user(word)], {}, headers))).toBe('So.')
    expect(await listTurns(api, sessionOf(first))).toHaveLength(1)
    const events = (await call(api, 'GET', `/v1/sessions/${sessionOf(first)}/events?types=tool.completed`)).body.data
    expect(events.map(({ data }: Json) => data.status)).toEqual([status])
  })

  it.each(['', '?text=streamed'])('stream%s an answer whose first attempt failed', async (query) => {
    const error = { status: 503, message: 'overloaded', times: 1, retry_after_ms: 100, after_text: true }
    const agent = await agentOf([{ text: 'All of it.', tokens_per_second: 20, error }])
    const { body } = await complete(agent, [user('1')], { stream: true }, {}, query)
    expect(body).toMatch(/data: \[DONE\]\n\n$/)
    expect(saidIn({ body })).toBe('All of it.')
  })

  it.each([false, true])('answer tasks of a chat outside its session, streamed: %s', async (stream) => {
    const agent = await agentOf([], { default_model_id: await modelId(api, 'llmsim-echo') })
    const headers = { 'X-Session-Id': `tasks ${stream}`, 'X-Task': 'title_generation' }
    const answer = await complete(agent, [user('### Task:\nA title')], { stream }, headers)
    expect(JSON.stringify(answer.body)).toContain('A title')
    expect((await call(api, 'GET', `/v1/sessions?agent_id=${agent}`)).body.total).toBe(0)
  })

  it('count the tokens of tasks, and refuse tasks when a budget is used up', async () => {
    const agent = await agentOf([], { default_model_id: await modelId(api, 'llmsim-echo') })
    const ask = () => complete(agent, [user('### Task:\nA title')], {}, { 'X-Task': 'title_generation' })
    const { usage } = (await ask()).body
    const sums = { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens }
    const used = (await call(api, 'GET', `/v1/usage?agent_id=${agent}&group_by=session`)).body
    expect(used).toMatchObject({ total: { calls: 1, ...sums }, data: [{ session_id: null, calls: 1 }] })
    expect((await call(api, 'GET', `/v1/agents/${agent}`)).body.usage).toMatchObject(sums)

    const limit = 2 * usage.total_tokens
    const input = { scope: 'agent', agent_id: agent, limit_tokens: limit, period: 'day' }
    const budget = (await call(api, 'POST', '/v1/budgets', input)).body
    expect((await ask()).status).toBe(200)
    expect((await call(api, 'GET', `/v1/budgets/${budget.id}`)).body).toMatchObject({ spent_tokens: limit })
    expect(await ask()).toMatchObject({
      status: 409,
      body: { error: { message: `The agent's budget of ${limit} tokens a day is used up` } },
    })
  })

  it('continue a session of this service by its own id', async () => {
    const agent = await agentOf([{ text: 'One.' }])
    const session = await createSession(api, undefined, { agent_id: agent })
    const answer = await complete(agent, [user('1')], {}, { 'X-Session-Id': session })
    expect([textOf(answer), sessionOf(answer)]).toEqual(['One.', session])
    const tools = [{ type: 'client_side', name: 'own', description: '', parameters: {} }]
    await call(api, 'PATCH', `/v1/sessions/${session}`, { tools })
    textOf(await complete(agent, [user('2')], { tools: [] }, { 'X-Session-Id': session }))
    expect((await call(api, 'GET', `/v1/sessions/${session}`)).body.tools).toEqual(tools)
    const other = await complete(await agentOf([]), [user('1')], {}, { 'X-Session-Id': session })
    expect(other).toMatchObject({ status: 400, body: { error: { message: /session of another agent/ } } })
  })

  it('report a failed turn, which its client must not repeat', async () => {
    const agent = await agentOf([
      { error: { status: 400, message: 'too long' } },
      { error: { status: 400, message: 'x' } },
    ])
    const answer = await complete(agent, [user('1')])
    expect(answer).toMatchObject({
      status: 400,
      body: {
        error: { message: 'llmsim answered 400: too long', type: 'server_error', param: null, code: 'llm_error' },
      },
    })
    expect(answer.headers.get('x-should-retry')).toBe('false')
    const { body } = await complete(agent, [user('1')], { stream: true })
    expect(body).toMatch(/data: \{"error":\{"message":"llmsim answered 400: too long".*\}\n\n$/)
  })

  describe('refuse', () => {
    let agent: string
    beforeAll(async () => {
      agent = await agentOf([], { name: 'Twice' })
      await agentOf([], { name: 'Twice' })
    })
    it.each<[string, () => Promise<Answer>, number, RegExp, object]>([
      [
        'an unknown name',
        () => complete('x', [user('1')]),
        404,
        /no agent named "x"/,
        { code: 'model_not_found', param: 'model' },
      ],
      ['an unknown id', () => complete(unknownId('agent'), [user('1')]), 404, /Agent not found/, {}],
      ['a name of two agents', () => complete('Twice', [user('1')]), 400, /several agents are named/, {}],
      ['no messages', () => complete(agent, []), 400, /must have a message/, {}],
      ['two choices', () => complete(agent, [user('1')], { n: 2 }), 400, /n: must be 1/, {}],
      ['a tool without a name', () => complete(agent, [user('1')], { tools: [tool('')] }), 400, /tools\.0\.name/, {}],
      [
        'an unknown session',
        () => complete(agent, [user('1')], {}, { 'X-Session-Id': unknownId('session') }),
        404,
        /Session not found/,
        {},
      ],
      [
        'a result of a call in an unknown session',
        () => complete(agent, [{ role: 'tool', tool_call_id: `a.${'0'.repeat(32)}`, content: '' }]),
        404,
        /Session not found/,
        {},
      ],
      [
        'a result of a call that was never sent',
        () => complete(agent, [{ role: 'tool', tool_call_id: 'a', content: '' }]),
        400,
        /is not the id of a call/,
        {},
      ],
      ['a body without JSON', () => call(api, 'POST', '/v1/chat/completions', '{'), 400, /JSON/, {}],
    ])('%s', async (_, request, status, message, more) => {
      const answer = await request()
      expect(answer).toMatchObject({
        status,
        body: { error: { message: expect.stringMatching(message), type: 'invalid_request_error', ...more } },
      })
      expect(answer.headers.get('x-should-retry')).toBe('false')
    })
  })
})

it('leaves the form of errors to the API where a path only looks like its own', async () => {
  const answer = await call(api, 'GET', `/v1/sessions/${unknownId('session')}/fs/v1/models/x`)
  expect(answer).toMatchObject({ status: 404, body: { error: 'Session not found', code: 'not_found' } })
})

it('takes two approvals, one after the other', async () => {
  const asked = { tool_calls: [{ name: 'get_weather', arguments: { location: 'Oslo' } }] }
  const more = { capabilities: ['test_weather'], tools: [guardedTool('get_weather')] }
  const agent = await agentOf([asked, asked, { text: 'So.' }], more)
  const headers = { 'X-Session-Id': 'two approvals' }
  const first = await complete(agent, [user('1')], {}, headers)
  expect(textOf(await complete(agent, [user('approve')], {}, headers))).toMatch(/^Approval is needed/)
  expect(textOf(await complete(agent, [user('approve')], {}, headers))).toBe('So.')
  expect(await messagesOf(sessionOf(first))).not.toContain('approve')
})

it('asks for a credential in its own form', async () => {
  await withService({ environment: ADMIN_MODE, worker: false }, async ({ url }) => {
    const answer = await call(url, 'GET', '/v1/models')
    expect(answer).toMatchObject({
      status: 401,
      body: { error: { message: 'Authentication required', type: 'authentication_error', code: 'unauthenticated' } },
    })
    const chat = await call(url, 'GET', `/v1/faces/ai-sdk/7/${unknownId('agent')}/chat/messages`)
    expect(chat).toMatchObject({ status: 401, body: 'Authentication required' })
  })
})
