import { hash } from 'node:crypto'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { createScriptedAgent } from '../support/agents.ts'
import { call, createScriptedSession, createSession, expectError, type Json, textMessage } from '../support/http.ts'
import { anthropicMessages } from '../support/providers/anthropic-messages.ts'
import { chatCompletions } from '../support/providers/chat-completions.ts'
import type { Content } from '../support/providers/content.ts'
import { geminiStream } from '../support/providers/gemini-stream.ts'
import { responses } from '../support/providers/responses.ts'
import { type FakeProvider, startProvider } from '../support/providers/scripted-server.ts'
import { expectSoundRecord, textOf, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { clientTool, getTurn, listTurns, postAndAsk, submit, waitForEvent } from '../support/turns.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
})
afterAll(() => service.stop())

const api = () => service.url
const CITY = { type: 'string', enum: ['Oslo', 'Rome'] }
const SCHEMA = {
  type: 'object',
  properties: { city: CITY, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
}
/** No provider enforces it: it is recursive. */
const TREE = {
  type: 'object',
  properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
  required: ['name'],
}
const OSLO = { city: 'Oslo', days: 2 }
const gives = (value: unknown) => ({ text: JSON.stringify(value) })
const calls = (value: object | string, name = 'final_output') => ({ tool_calls: [{ name, arguments: value }] })
const ask = async (session: string, more: Record<string, unknown> = {}): Promise<Json> =>
  (await call(api(), 'POST', `/v1/sessions/${session}/messages?wait=60`, textMessage('Where to?', more))).body
const eventsOf = async (session: string): Promise<Json[]> =>
  (await call(api(), 'GET', `/v1/sessions/${session}/events?limit=200`)).body.data
const completed = (events: Json[]): Json => events.find(({ type }) => type === 'turn.completed')?.data

describe("a turn's output", () => {
  it.each<[string, object[], Json, number, string]>([
    ['the text of the answer', [gives(OSLO)], OSLO, 1, '{"city":"Oslo","days":2}'],
    ['a text in a code block', [{ text: '```json\n{"city":"Oslo","days":2}\n```' }], OSLO, 1, '```json'],
    [
      'the arguments of final_output',
      [{ text: 'Well.', ...calls(OSLO) }],
      OSLO,
      1,
      'Well.\n\n{"city":"Oslo","days":2}',
    ],
    ['the answer after a miss', [gives({ city: 'Bern' }), gives(OSLO)], OSLO, 2, '{"city":"Oslo"'],
    ['the third answer', [{ text: 'Oslo!' }, calls('{"city'), calls(OSLO)], OSLO, 3, '{"city":"Oslo"'],
  ])('is %s', async (_, steps, output, iterations, text) => {
    const session = await createScriptedSession(api(), steps, { output_schema: SCHEMA })
    const answer = await ask(session)
    expect(answer.turn).toMatchObject({ status: 'completed', output, iterations })
    expect(textOf(answer.output)).toMatch(text)
    expect(await getTurn(api(), session, answer.turn.id)).toEqual(answer.turn)
    const events = await eventsOf(session)
    expectSoundRecord(events)
    expect(completed(events)).toMatchObject({ output, iterations })
    expect(events.find(({ type }) => type === 'llm.generation')?.data.metadata).toMatchObject({
      output_schema_sha256: hash('sha256', canonicalJson(SCHEMA)),
    })
    expect(typesOf(events).filter((type) => /^(act|tool)\./.test(type))).toEqual([])
  })

  it('is told what is wrong with it, twice at most; then the turn fails', async () => {
    const steps = [{ text: 'Oslo!' }, gives([]), gives({ city: 'Bern', days: 1.5, more: 1 }), gives(OSLO)]
    const session = await createScriptedSession(api(), steps, { output_schema: SCHEMA })
    const { turn } = await ask(session)
    expect(turn).toMatchObject({ status: 'failed', error_code: 'output_invalid', output: null, iterations: 3 })
    const events = await eventsOf(session)
    expectSoundRecord(events)
    const errors = events
      .filter(({ type }) => type === 'output.message.completed')
      .map(({ data }) => data.message.metadata.output_error)
    expect(errors).toEqual([
      expect.stringMatching(/^It is not JSON: /),
      'It is JSON, but not an object.',
      'It does not fit its schema: more is not one of the fields; city must be one of ["Oslo","Rome"]; days must be integer.',
    ])
    expect((await ask(session)).turn).toMatchObject({ status: 'completed', output: OSLO })
  })

  it("fits the message's schema instead of the agent's, and the one of the version that the turn runs", async () => {
    const steps = [gives({ name: 'a', children: [{ name: 'b' }] }), { text: 'Any.' }, gives(OSLO)]
    const agent = await createScriptedAgent(api(), steps, { output_schema: SCHEMA })
    const { id } = (await call(api(), 'POST', '/v1/sessions', { agent_id: agent, agent_version: 1 })).body
    const changed = await call(api(), 'PATCH', `/v1/agents/${agent}`, { output_schema: {} })
    expect(changed.body).toMatchObject({ output_schema: null, version: 2 })
    const tree = await ask(id, { output_schema: TREE })
    expect(tree.turn.output).toEqual({ name: 'a', children: [{ name: 'b' }] })
    expect((await ask(id, { output_schema: {} })).turn).toMatchObject({ status: 'completed', output: null })
    expect((await ask(id)).turn.output).toEqual(OSLO)
    expect((await listTurns(api(), id)).map(({ output }) => output)).toEqual([tree.turn.output, null, OSLO])
  })

  it('comes after the results of tools, however early the model gives it', async () => {
    const steps = [{ tool_calls: [{ id: 'one', name: 'ask', arguments: {} }, ...calls({}).tool_calls] }, calls(OSLO)]
    const session = await createScriptedSession(api(), steps, { output_schema: SCHEMA, tools: [clientTool('ask')] })
    const waiting = await postAndAsk(api(), session)
    expect(waiting.pending_tool_calls).toMatchObject([{ id: 'one' }])
    await submit(api(), session, [{ tool_call_id: 'one', result: 'yes' }])
    await waitForEvent(api(), session, 'turn.completed')
    expect(await getTurn(api(), session, waiting.id)).toMatchObject({ output: OSLO, iterations: 2 })
  })

  it("has its agent's caps, and no more calls of tools than they allow", async () => {
    const agent = { output_schema: SCHEMA, limits: { max_model_calls: 2, max_tool_calls: 1 } }
    const session = await createScriptedSession(api(), [{ text: 'a' }, { text: 'b' }, gives(OSLO)], agent)
    expect((await ask(session)).turn).toMatchObject({ error_code: 'max_iterations', iterations: 2 })
  })

  it('is refused when it is too large, too deep, or takes too long to check', async () => {
    const any = { type: 'object', properties: { slow: { type: 'string', pattern: '^(a+)+$' } } }
    const deep = `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`
    const steps = [gives({ a: 'x'.repeat(64 * 1024) }), { text: deep }, gives({ slow: `${'a'.repeat(60)}!` })]
    const session = await createScriptedSession(api(), steps, { output_schema: any })
    expect((await ask(session)).turn).toMatchObject({ error_code: 'output_invalid' })
    const messages: Json[] = (await call(api(), 'GET', `/v1/sessions/${session}/messages`)).body.data
    expect(messages.slice(1).map(({ metadata }) => metadata.output_error)).toEqual([
      'It has more than 65536 bytes.',
      'It is nested more than 64 levels deep.',
      'It could not be checked in time; give a simpler one.',
    ])
  })
})

describe('an output_schema', () => {
  it.each<[string, unknown, RegExp]>([
    ['no object', [], /^output_schema: /],
    ['of a list', { type: 'array' }, /^output_schema: type must be "object" at the top$/],
    ['no JSON Schema', { type: 'object', properties: 5 }, /^output_schema: must be a JSON Schema/],
    ['with a schema elsewhere', { $ref: 'https://example.com/a.json' }, /^output_schema: the \$ref .* is not followed/],
    ['without an end', { type: 'object', $ref: '#' }, /^output_schema: refers to itself without an end$/],
    [
      'in a circle',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
      /it is nested too deeply$/,
    ],
    [
      'too large',
      { type: 'object', description: 'x'.repeat(32 * 1024) },
      /^output_schema: must be at most 32768 bytes/,
    ],
  ])('is refused: %s', async (_, output_schema, sentence) => {
    const agent = { name: 'A', system_prompt: 'Help.', output_schema }
    expectError(await call(api(), 'POST', '/v1/agents', agent), 400, sentence)
    const session = await createSession(api())
    const message = textMessage('Hi', { output_schema })
    expectError(await call(api(), 'POST', `/v1/sessions/${session}/messages`, message), 400, sentence)
  })

  it('belongs to the versions, the copy and the document of its agent', async () => {
    const agent = await createScriptedAgent(api(), [], { output_schema: SCHEMA })
    const path = `/v1/agents/${agent}`
    await call(api(), 'PATCH', path, { output_schema: TREE })
    const { body: diff } = await call(api(), 'GET', `${path}/versions/2/diff`)
    expect(diff.changes).toEqual([{ field: 'output_schema', from: SCHEMA, to: TREE }])
    expect((await call(api(), 'POST', `${path}/copy`)).body.output_schema).toEqual(TREE)
    expect((await call(api(), 'POST', `${path}/versions/1/restore`, {})).body.output_schema).toEqual(SCHEMA)
    const document = await (await fetch(`${api()}${path}/export`)).text()
    const headers = { 'content-type': 'text/markdown' }
    const imported = await fetch(`${api()}/v1/agents/import`, { method: 'POST', headers, body: document })
    // Models write properties in the order of the schema.
    expect(JSON.stringify(Object(await imported.json()).output_schema)).toBe(JSON.stringify(SCHEMA))
  })
})

type Answer = Omit<Content, 'blocks' | 'usage'>
type Protocol = {
  type: string
  model: string
  start: (answers: Answer[]) => Promise<FakeProvider<unknown>>
  /** The part of a request in which the provider gets the schema. */
  format: (body: Json) => unknown
}

const protocols: Protocol[] = [
  { type: 'openai', model: 'gpt-5-mini', start: (a) => startProvider(responses, a), format: ({ text }) => text.format },
  {
    type: 'openai_completions',
    model: 'gpt-5-mini',
    start: (answers) => startProvider(chatCompletions, answers),
    format: ({ response_format }) => response_format.json_schema,
  },
  {
    type: 'anthropic',
    model: 'claude-sonnet-4-5',
    start: (answers) => startProvider(anthropicMessages, answers),
    format: ({ output_config }) => output_config.format,
  },
  {
    type: 'gemini',
    model: 'gemini-2.5-flash',
    start: (answers) => startProvider(geminiStream, answers),
    format: ({ generationConfig }) => ({ schema: generationConfig.responseJsonSchema }),
  },
]

describe.each(protocols)('an output of a provider of type $type', ({ type, model, start, format }) => {
  async function run(output_schema: object, answers: Answer[], more: object = {}) {
    const fake = await start(answers)
    const provider = { name: 'Fake', provider_type: type, base_url: fake.baseUrl, api_key: 'sk-x' }
    const { id } = (await call(api(), 'POST', '/v1/llm-providers', provider)).body
    const models = `/v1/llm-providers/${id}/models`
    const added = await call(api(), 'POST', models, { model_id: model, display_name: model })
    const agent = { name: 'A', system_prompt: 'Help.', default_model_id: added.body.id, output_schema, ...more }
    const session = await createSession(api(), agent)
    const { turn } = await ask(session)
    await fake.close()
    return { turn, session, bodies: fake.requests.map(({ body }) => body as Json) }
  }
  const call_ = (value: object) => ({ id: 'call_1', name: 'final_output', arguments: JSON.stringify(value) })

  it('is enforced by the provider, and asked for again there', async () => {
    const { turn, bodies } = await run(SCHEMA, [{ text: ['{"city":', '"Bern"}'] }, { text: [JSON.stringify(OSLO)] }])
    expect(turn).toMatchObject({ status: 'completed', output: OSLO, iterations: 2 })
    expect(bodies.map(format)).toMatchObject([{ schema: SCHEMA }, { schema: SCHEMA }])
    expect(JSON.stringify(bodies[0])).not.toContain('final_output')
    expect(JSON.stringify(bodies[1])).toContain(
      'The answer was not accepted. It does not fit its schema: days is required',
    )
  })

  it('is a call of a tool where the provider does not take the schema', async () => {
    const tree = { name: 'a', children: [{ name: 'b', children: [] }] }
    const blocks: Answer[] = [
      { thinking: ['Hm.'], toolCalls: [call_({ children: [] })] },
      { text: ['Here.'], toolCalls: [call_(tree)] },
      { text: [JSON.stringify(OSLO)] },
    ]
    const { turn, session, bodies } = await run(TREE, blocks)
    expect(turn).toMatchObject({ status: 'completed', output: tree, iterations: 2 })
    const sent = JSON.stringify(bodies[0])
    expect(sent).toContain('Give the final answer by a call of the tool final_output')
    expect(JSON.stringify(bodies[1])).toContain('It does not fit its schema: name is required')
    expect(JSON.stringify(await eventsOf(session))).not.toContain('final_output')
  })
})
