import { call, createScriptedSession, createSession, expectError, modelId, textMessage } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { giveTools } from '../support/mcp-tools.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { callsOf, clientTool, postAndAsk } from '../support/turns.ts'

const SKILL = '---\nname: invoices\ndescription: Reads invoices.\n---\nRead them.'

let api: Organization
let ids: { agent: string; session: string; waiting: string; server: string; skill: string }
beforeAll(async () => {
  api = await newOrganization()
  const agent = (await call(api, 'POST', '/v1/agents', { name: 'A', system_prompt: 'Help.' })).body.id
  const session = await createSession(api)
  const waiting = await createScriptedSession(api, [{ tool_calls: callsOf('ask') }], { tools: [clientTool('ask')] })
  await postAndAsk(api, waiting)
  const server = (await call(api, 'POST', '/v1/mcp-servers', { name: 'Mine', url: 'https://mcp.example/mcp' })).body.id
  await giveTools(api, toUuid(server))
  const skill = (await call(api, 'POST', '/v1/skills', { skill_md: SKILL })).body.id
  for (const provider of ['One', 'Two']) {
    const { id } = (await call(api, 'POST', '/v1/llm-providers', { name: provider, provider_type: 'llmsim' })).body
    const twin = { model_id: 'llmsim-lorem-5-twin', display_name: 'Twin' }
    await call(api, 'POST', `/v1/llm-providers/${id}/models`, twin)
  }
  ids = { agent, session, waiting, server, skill }
})

type Request = [method: string, path: string, body?: unknown, headers?: Record<string, string>]
const agent = (more: object): Request => ['POST', '/v1/agents', { name: 'A', system_prompt: 'Help.', ...more }]
const withTool = (tool: object): Request => agent({ capabilities: [{ ref: 'test_math' }], tools: [tool] })
const guard = (name: string, more: object = {}) => ({ type: 'builtin', name, policy: 'requires_approval', ...more })
const session = (more: object): Request => ['POST', '/v1/sessions', more]
const message = (body: unknown): Request => ['POST', `/v1/sessions/${ids.session}/messages`, body]
const content = (parts: unknown): Request => message({ message: { content: parts } })
const results = (...list: unknown[]): Request => [
  'POST',
  `/v1/sessions/${ids.waiting}/tool-results`,
  { tool_results: list },
]
const mine = (query: string): Request => ['GET', `/v1/sessions/${ids.session}/events?${query}`]

const DIGITS = '0193aaaabbbb7ccc8ddd0123456789ab'
const FUNCTION = { type: 'function', function: { name: 'ask', parameters: {} } }

/** Typical mistakes of people who come from other services, and what the answer has to say. */
const MISTAKES: [mistake: string, request: () => Request, field: string | undefined, sentence: RegExp][] = [
  // Agents
  ['an agent without a name', () => ['POST', '/v1/agents', { system_prompt: 'x' }], 'name', /is required/],
  ['an agent without a prompt', () => ['POST', '/v1/agents', { name: 'x' }], 'system_prompt', /is required/],
  [
    'an agent with nothing',
    () => ['POST', '/v1/agents', {}],
    undefined,
    /^name: is required; system_prompt: is required$/,
  ],
  ['no body', () => ['POST', '/v1/agents'], undefined, /JSON request body is required/],
  [
    'a list for a body',
    () => ['POST', '/v1/agents', []],
    undefined,
    /^The request body: must be an object, not an array$/,
  ],
  ['a model by OpenAI’s key', () => agent({ model: 'gpt-5' }), 'model', /is not supported; give default_model_id/],
  [
    'a model by the session’s key',
    () => agent({ model_id: 'gpt-5' }),
    'model_id',
    /is not supported; give default_model_id/,
  ],
  ['instructions', () => agent({ instructions: 'Help.' }), 'instructions', /is not supported; give system_prompt/],
  ['a prompt', () => agent({ prompt: 'Help.' }), 'prompt', /is not supported; give system_prompt/],
  ['Anthropic’s system', () => agent({ system: 'Help.' }), 'system', /is not supported; give system_prompt/],
  ['MCP servers', () => agent({ mcp_servers: [ids.server] }), 'mcp_servers', /is not supported; give capabilities/],
  ['skills', () => agent({ skills: [ids.skill] }), 'skills', /is not supported; give capabilities/],
  [
    'instructions alone',
    () => ['POST', '/v1/agents', { name: 'A', instructions: 'x' }],
    undefined,
    /give system_prompt/,
  ],
  ['a model in a PATCH', () => ['PATCH', `/v1/agents/${ids.agent}`, { model: 'x' }], 'model', /give default_model_id/],
  [
    'instructions in a preview',
    () => ['POST', '/v1/agents/preview', { system_prompt: '', instructions: 'x' }],
    'instructions',
    /give system_prompt/,
  ],
  [
    'an unknown model’s name',
    () => agent({ default_model_id: 'gpt-4o' }),
    'default_model_id',
    /there is no model "gpt-4o"; GET \/v1\/llm-models lists them/,
  ],
  [
    'a name that two models have',
    () => agent({ default_model_id: 'llmsim-lorem-5-twin' }),
    'default_model_id',
    /2 models are named "llmsim-lorem-5-twin": model_[0-9a-f]{32} of One, model_[0-9a-f]{32} of Two; give the id of one/,
  ],
  [
    'an unknown model’s id',
    () => agent({ default_model_id: `model_${DIGITS}` }),
    'default_model_id',
    /there is no model model_\w+; GET \/v1\/llm-models lists them/,
  ],
  [
    'a malformed model id',
    () => agent({ default_model_id: 'model_1' }),
    'default_model_id',
    /must be model_ followed by 32 .* or the name of a model/,
  ],
  ['tags as a string', () => agent({ tags: 'a' }), 'tags', /must be an array, not a string/],
  ['a number for a name', () => agent({ name: 5 }), 'name', /must be a string, not a number/],
  ['capabilities as a string', () => agent({ capabilities: 'noop' }), 'capabilities', /must be an array, not a string/],
  ['a capability by id', () => agent({ capabilities: [{ id: 'noop' }] }), 'capabilities.0.ref', /is required/],
  ['a capability by name', () => agent({ capabilities: [{ name: 'noop' }] }), 'capabilities.0.ref', /is required/],
  [
    'a capability as a number',
    () => agent({ capabilities: [5] }),
    'capabilities.0',
    /must be a string or an object, not a number/,
  ],
  [
    'a capability of another spelling',
    () => agent({ capabilities: ['file_system'] }),
    'capabilities',
    /there is no capability "file_system"; GET \/v1\/capabilities lists them/,
  ],
  [
    'a skill by its name',
    () => agent({ capabilities: ['skill:invoices'] }),
    'capabilities',
    /"skill:invoices"; the ref of that skill is skill:[0-9a-f-]{36}$/,
  ],
  [
    'an MCP server by its name',
    () => agent({ capabilities: ['mcp:Mine'] }),
    'capabilities',
    /"mcp:Mine"; the ref of that MCP server is mcp:[0-9a-f-]{36}$/,
  ],
  [
    'an MCP server that is gone',
    () => agent({ capabilities: [`mcp_${DIGITS}`] }),
    'capabilities',
    /there is no capability "mcp:0193aaaa-bbbb-7ccc-8ddd-0123456789ab"; GET \/v1\/capabilities/,
  ],
  // Tools
  [
    'OpenAI’s tool',
    () => agent({ tools: [FUNCTION] }),
    'tools.0.type',
    /must be "builtin", "client_side" or "temporal"/,
  ],
  [
    'a tool without a type',
    () => agent({ tools: [{ name: 'x' }] }),
    'tools.0.type',
    /is required: "builtin", "client_side" or "temporal"/,
  ],
  ['a tool as a string', () => agent({ tools: ['bash'] }), 'tools.0', /must be an object, not a string/],
  [
    'Anthropic’s input_schema',
    () => agent({ tools: [{ type: 'client_side', name: 'a', description: '', input_schema: {} }] }),
    'tools.0.parameters',
    /is required/,
  ],
  [
    'a client tool without a description',
    () => agent({ tools: [{ type: 'client_side', name: 'a', parameters: {} }] }),
    'tools.0.description',
    /is required/,
  ],
  [
    'parameters that are null',
    () => agent({ tools: [clientTool('a', {}, { parameters: null })] }),
    'tools.0.parameters',
    /must be an object, not null/,
  ],
  [
    'parameters as a text',
    () => agent({ tools: [clientTool('a', {}, { parameters: '{}' })] }),
    'tools.0.parameters',
    /must be an object, not a string/,
  ],
  [
    'a policy on a client tool',
    () => withTool(clientTool('a', {}, { policy: 'requires_approval' })),
    'tools.0.policy',
    /is not supported; a client tool is run by the client/,
  ],
  ...['needsApproval', 'needs_approval', 'require_approval', 'requires_approval'].map(
    (name): (typeof MISTAKES)[number] => [
      `an approval by ${name}`,
      () => withTool({ type: 'builtin', name: 'add', [name]: true }),
      `tools.0.${name}`,
      /is not supported; give "policy": "requires_approval"/,
    ],
  ),
  [
    'an approval of a client tool',
    () => withTool(clientTool('a', {}, { needsApproval: true })),
    'tools.0.needsApproval',
    /is not supported; a client tool is run by the client/,
  ],
  [
    'a client tool named like a builtin one',
    () => withTool(clientTool('multiply')),
    'tools.0.name',
    /"multiply" is a tool of test_math.*"replaces": true/,
  ],
  [
    'an approval of a tool in another spelling',
    () => withTool(guard('Multiply')),
    'tools.0.name',
    /the agent has no tool "Multiply"; its tools are: add, subtract, multiply, divide$/,
  ],
  [
    'an approval of a tool that nobody has',
    () => withTool(guard('rm_rf')),
    'tools.0.name',
    /the agent has no tool "rm_rf"; its tools are: add/,
  ],
  [
    'an approval without the capability',
    () => agent({ tools: [guard('bash')] }),
    'tools.0.name',
    /the agent has no tool "bash"; the capability virtual_bash has it$/,
  ],
  [
    'an approval without any capability',
    () => agent({ tools: [guard('rm_rf')] }),
    'tools.0.name',
    /the agent has no tool "rm_rf", and none at all; GET \/v1\/capabilities lists them/,
  ],
  [
    'an approval of an MCP tool in another spelling',
    () => agent({ capabilities: [`mcp_${ids.server.slice(4)}`], tools: [guard('mcp_mine__Search')] }),
    'tools.0.name',
    /no tool "mcp_mine__Search"; its tools are: mcp_mine__search$/,
  ],
  [
    'an approval of a tool of another MCP server',
    () => agent({ capabilities: [ids.server], tools: [guard('mcp_yours__search')] }),
    'tools.0.name',
    /its tools are: mcp_mine__search$/,
  ],
  [
    'a policy of another spelling',
    () => withTool(guard('add', { policy: 'always_ask' })),
    'tools.0.policy',
    /must be "auto", "requires_approval" or "client_side"/,
  ],
  ['a tool with a space in its name', () => withTool(clientTool('a b')), 'tools.0.name', /must be 1 to 64 letters/],
  [
    'two tools of one name',
    () => agent({ tools: [clientTool('a'), clientTool('a')] }),
    'tools',
    /must not have two tools of one name/,
  ],
  // Sessions
  ['an agent’s name', () => session({ agent_name: 'Ada' }), 'agent_name', /is not supported; give agent_id/],
  ['an agent by another key', () => session({ agent: ids.agent }), 'agent', /is not supported; give agent_id/],
  ['a harness’s name', () => session({ harness_name: 'Base' }), 'harness_name', /is not supported; give harness_id/],
  ['LangGraph’s assistant', () => session({ assistant_id: ids.agent }), 'assistant_id', /give agent_id/],
  ['instructions of a session', () => session({ instructions: 'Help.' }), 'instructions', /give agent_id, of an agent/],
  ['a prompt of a session', () => session({ system_prompt: 'Help.' }), 'system_prompt', /give agent_id, of an agent/],
  [
    'a session’s model in a PATCH',
    () => ['PATCH', `/v1/sessions/${ids.session}`, { model: 'gpt-5' }],
    'model',
    /is not supported; give model_id/,
  ],
  ['a session’s model', () => session({ model: 'gpt-5' }), 'model', /is not supported; give model_id/],
  [
    'an agent’s id without its prefix',
    () => session({ agent_id: DIGITS }),
    'agent_id',
    /must be agent_ followed by 32/,
  ],
  [
    'an approval in a session',
    () => session({ tools: [guard('bash')] }),
    'tools.0.name',
    /the session has no tool "bash"; the capability virtual_bash has it/,
  ],
  // Messages
  [
    'a message as a string',
    () => message({ message: 'Hello' }),
    'message',
    /must be an object such as {"content": "Hello"}/,
  ],
  [
    'content without a message',
    () => message({ content: 'Hello' }),
    undefined,
    /content: is not supported; give message/,
  ],
  [
    'OpenAI’s messages',
    () => message({ messages: [{ role: 'user', content: 'Hello' }] }),
    undefined,
    /messages: is not supported; give message/,
  ],
  [
    'the role assistant',
    () => message({ message: { role: 'assistant', content: 'Hi' } }),
    'message.role',
    /must be "user" or be left out/,
  ],
  ['a message without content', () => message({ message: {} }), 'message.content', /is required/],
  ['a message with a text', () => message({ message: { text: 'Hello' } }), 'message.content', /is required/],
  ['empty content', () => content([]), 'message.content', /must have at least one part/],
  ['a part that is a string', () => content(['Hello']), 'message.content.0', /must be an object, not a string/],
  ['a number for content', () => content(5), 'message.content', /must be a string or an array, not a number/],
  [
    'OpenAI’s part',
    () => content([{ type: 'input_text', text: 'Hello' }]),
    'message.content.0.type',
    /must be "text", "image" or "image_file"/,
  ],
  [
    'a part without a type',
    () => content([{ text: 'Hello' }]),
    'message.content.0.type',
    /is required: "text", "image" or "image_file"/,
  ],
  [
    'a text part without a text',
    () => content([{ type: 'text', content: 'Hello' }]),
    'message.content.0.text',
    /is required/,
  ],
  [
    'an image without a source',
    () => content([{ type: 'image' }]),
    'message.content.0',
    /must have url, or base64 with media_type/,
  ],
  [
    'a model in the controls',
    () => message({ ...textMessage('Hi'), controls: { model: 'x' } }),
    'controls.model',
    /is not supported; give model_id/,
  ],
  [
    'a model beside the message',
    () => message({ ...textMessage('Hi'), model: 'x' }),
    'model',
    /is not supported; give controls.model_id/,
  ],
  [
    'an unknown model in the controls',
    () => message({ ...textMessage('Hi'), controls: { model_id: 'gpt-5' } }),
    'controls.model_id',
    /there is no model "gpt-5"; GET \/v1\/llm-models lists them/,
  ],
  [
    'an effort of another spelling',
    () => message({ ...textMessage('Hi'), controls: { reasoning: { effort: 'max' } } }),
    'controls.reasoning.effort',
    /must be one of "none", "minimal"/,
  ],
  [
    'a stream by OpenAI’s key',
    () => message({ ...textMessage('Hi'), stream: true }),
    'stream',
    /is not supported; send Accept: text\/event-stream/,
  ],
  [
    'a stream by a query',
    () => ['POST', `/v1/sessions/${ids.session}/messages?stream=true`, textMessage('Hi')],
    'stream',
    /is not supported; send Accept: text\/event-stream/,
  ],
  [
    'a policy for a busy session',
    () => message({ ...textMessage('Hi'), on_busy: 'cancel' }),
    'on_busy',
    /must be one of "enqueue", "reject", "interrupt", "steer"/,
  ],
  // Results
  [
    'a result as output',
    () => results({ tool_call_id: 'ask', output: 'x' }),
    'tool_results.0.output',
    /is not supported; give result/,
  ],
  [
    'a result as content',
    () => results({ tool_call_id: 'ask', content: 'x' }),
    'tool_results.0.content',
    /is not supported; give result/,
  ],
  [
    'neither result nor error',
    () => results({ tool_call_id: 'ask' }),
    'tool_results.0.result',
    /is required, or error/,
  ],
  [
    'an error that is null',
    () => results({ tool_call_id: 'ask', error: null }),
    'tool_results.0.result',
    /is required, or error/,
  ],
  ['a result without its call', () => results({ result: 'x' }), 'tool_results.0.tool_call_id', /is required/],
  [
    'a call that is not pending',
    () => results({ tool_call_id: 'zzz', result: 1 }),
    'tool_results.0.tool_call_id',
    /zzz is not pending; pending are: ask/,
  ],
  ['no results', () => results(), 'tool_results', /must have at least one result/],
  [
    'a result without a list',
    () => ['POST', `/v1/sessions/${ids.waiting}/tool-results`, { tool_call_id: 'ask', result: 1 }],
    'tool_results',
    /is required/,
  ],
  [
    'OpenAI’s tool_outputs',
    () => ['POST', `/v1/sessions/${ids.waiting}/tool-results`, { tool_outputs: [] }],
    undefined,
    /tool_outputs: is not supported; give tool_results/,
  ],
  // Events and lists
  [
    'several types in one',
    () => mine('types=turn.started,turn.completed'),
    'types.0',
    /must be an event type, not "turn.started,turn.completed"; repeat the key for several/,
  ],
  ['a sequence as a cursor', () => mine('since_id=5'), 'since_id', /must be event_ followed by 32/],
  ['a limit of 0', () => ['GET', '/v1/sessions?limit=0'], 'limit', /must be a whole number, 1 or more/],
  ['a limit in words', () => ['GET', '/v1/sessions?limit=ten'], 'limit', /must be a whole number, 1 or more/],
]

const LIBRARY_WORDS = /invalid|expected|received|discriminator|\brecord\b|undefined|too (big|small)/i

describe('a typical mistake', () => {
  it.each(MISTAKES)('(%s) is answered with what to do', async (_, request, field, sentence) => {
    const [method, path, body, headers] = request()
    const answer = await call(api, method, path, body, headers)
    expectError(answer, 400, sentence)
    expect(answer.body.error).not.toMatch(LIBRARY_WORDS)
    expect([answer.body.code, answer.body.field]).toEqual(['invalid', field])
  })

  it.each<[string, () => Request, number, string, RegExp]>([
    [
      'a path without /v1',
      () => ['GET', '/sessions'],
      404,
      'not_found',
      /no route GET \/sessions; the routes begin with \/v1$/,
    ],
    [
      'a path of OpenAI’s that is not served',
      () => ['POST', '/v1/embeddings', {}],
      404,
      'not_found',
      /no route POST \/v1\/embeddings$/,
    ],
    [
      'another method',
      () => ['PUT', '/v1/agents', {}],
      405,
      'method_not_allowed',
      /PUT is not allowed here; allowed: /,
    ],
    [
      'a form',
      () => ['POST', '/v1/agents', 'name=A', { 'Content-Type': 'application/x-www-form-urlencoded' }],
      415,
      'unsupported_media_type',
      /must be JSON/,
    ],
    ['malformed JSON', () => ['POST', '/v1/agents', '{"name": "A",}'], 400, 'invalid', /is not valid JSON/],
    [
      'results for nobody',
      () => ['POST', `/v1/sessions/${ids.session}/tool-results`, { tool_results: [{ tool_call_id: 'a', result: 1 }] }],
      409,
      'not_waiting',
      /is not waiting for tool results/,
    ],
    ['an unknown session', () => ['GET', `/v1/sessions/session_${DIGITS}`], 404, 'not_found', /Session not found/],
  ])('(%s) has a status and a code of its own', async (_, request, status, code, sentence) => {
    const [method, path, body, headers] = request()
    const answer = await call(api, method, path, body, headers)
    expectError(answer, status, sentence)
    expect(answer.body.code).toBe(code)
  })
})

describe('what people write first', () => {
  it('is taken for a message: a string for its content', async () => {
    const { status, body } = await call(api, ...content('Hello'))
    expect([status, body.content]).toEqual([201, [{ type: 'text', text: 'Hello' }]])
  })

  it('is taken for capabilities: their ids, and the ids of MCP servers and skills', async () => {
    const [mcp, skill] = [`mcp:${toUuid(ids.server)}`, `skill:${toUuid(ids.skill)}`]
    const forms = ['noop', ids.server, { ref: `skill:${ids.skill}`, config: 1 }, 'current_time']
    const { status, body } = await call(api, ...agent({ capabilities: forms }))
    expect([status, body.capabilities]).toEqual([
      201,
      [{ ref: 'noop' }, { ref: mcp }, { ref: skill, config: 1 }, { ref: 'current_time' }],
    ])
    const server = (await call(api, 'GET', `/v1/mcp-servers/${ids.server}`)).body
    expect([server.ref, (await call(api, 'GET', `/v1/skills/${ids.skill}`)).body.ref]).toEqual([mcp, skill])
    for (const [id, ref] of [
      [ids.server, mcp],
      [ids.skill, skill],
    ]) {
      expect((await call(api, 'GET', `/v1/capabilities/${id}`)).body.id).toBe(ref)
    }
  })

  it('is taken for a model: its name, where it is unique', async () => {
    const id = await modelId(api, 'llmsim-echo')
    const made = (await call(api, ...agent({ default_model_id: 'llmsim-echo' }))).body
    expect(made.default_model_id).toBe(id)
    const changed = await call(api, 'PATCH', `/v1/agents/${made.id}`, { default_model_id: 'llmsim-latency' })
    expect(changed.body.default_model_id).toBe(await modelId(api, 'llmsim-latency'))
    expect((await call(api, ...session({ model_id: 'llmsim-echo' }))).body.model_id).toBe(id)
    const posted = await call(api, ...message({ ...textMessage('Hi'), controls: { model_id: 'llmsim-echo' } }))
    expect(posted.body.controls).toEqual({ model_id: id })
  })

  it('is taken for a guard: type, name and policy', async () => {
    const { status, body } = await call(api, ...withTool(guard('multiply')))
    expect([status, body.tools]).toEqual([201, [{ ...guard('multiply'), description: '', parameters: {} }]])
    const replaced = await call(api, ...withTool(clientTool('multiply', {}, { replaces: true })))
    expect([replaced.status, replaced.body.tools[0]]).toMatchObject([201, { type: 'client_side', replaces: true }])
  })

  it('is the same request as its long form for an Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': 'short-and-long' }
    const [, path, short] = content('Once')
    const first = await call(api, 'POST', path, short, headers)
    const again = await call(api, 'POST', path, textMessage('Once'), headers)
    expect([again.status, again.body.id]).toEqual([201, first.body.id])
  })
})
