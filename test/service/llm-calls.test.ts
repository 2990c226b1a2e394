import { hash } from 'node:crypto'
import { addCosts } from '../../domain/models/llm/cost.ts'
import { type Answer, call, createSession, expectError, type Json, textMessage } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { type ListServer, openaiList, startListServer } from '../support/list-server.ts'
import { anthropicMessages } from '../support/providers/anthropic-messages.ts'
import { chatCompletions } from '../support/providers/chat-completions.ts'
import type { Content } from '../support/providers/content.ts'
import { geminiStream } from '../support/providers/gemini-stream.ts'
import { responses } from '../support/providers/responses.ts'
import { type FakeProvider, startProvider } from '../support/providers/scripted-server.ts'
import { startService, type TestService } from '../support/service.ts'
import { readable, withClient } from '../support/temporal.ts'

const KEY = 'sk-key-of-a-provider-in-a-test-0123456789'
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

let service: TestService
let list: ListServer
beforeAll(async () => {
  // Needs a worker, and addresses of this machine.
  service = await startService({ environment: { ALLOW_PRIVATE_NETWORK: 'true' } })
  list = await startListServer()
})
afterAll(async () => {
  await list.close()
  await service.stop()
})

const post = (path: string, body: unknown) => call(service.url, 'POST', path, body)
const get = async (path: string): Promise<Json> => (await call(service.url, 'GET', path)).body
const addProvider = async (provider_type: string, base_url: string, more: object = {}): Promise<string> =>
  `/v1/llm-providers/${(await post('/v1/llm-providers', { name: 'Fake', provider_type, base_url, api_key: KEY, ...more })).body.id}`

type Protocol = {
  type: string
  model: string
  /** Text of the first answer's thinking, as the next request gives it back. */
  back: object
  /** Its word for an answer that the limit on tokens has cut. */
  cut: string
  start: (answers: Content[]) => Promise<FakeProvider<unknown>>
}

const SIGNED = 'signature-of-thinking'
const protocols: Protocol[] = [
  {
    type: 'openai',
    model: 'gpt-5-mini',
    back: { encrypted_content: SIGNED },
    cut: 'max_output_tokens',
    start: (answers) => startProvider(responses, answers),
  },
  {
    type: 'anthropic',
    model: 'claude-sonnet-4-5',
    back: { type: 'thinking', thinking: 'Six times seven.', signature: SIGNED },
    cut: 'max_tokens',
    start: (answers) => startProvider(anthropicMessages, answers),
  },
  {
    type: 'gemini',
    model: 'gemini-2.5-flash',
    back: { thoughtSignature: SIGNED },
    cut: 'MAX_TOKENS',
    start: (answers) => startProvider(geminiStream, answers),
  },
]

const HUGE = { input_tokens: 5_000_000_000, output_tokens: 3 }

const ANSWERS: Content[] = [
  {
    blocks: [
      { type: 'thinking', deltas: ['Six times seven.'], signature: SIGNED },
      { type: 'call', id: 'call_1', name: 'multiply', arguments: '{"a":6,"b":7}', signature: SIGNED },
    ],
  },
  { blocks: [{ type: 'text', deltas: ['It is ', '42.'] }] },
  { blocks: [{ type: 'text', deltas: ['Still 42.'] }] },
]

async function addModel(provider: string, model_id: string): Promise<string> {
  return (await post(`${provider}/models`, { model_id, display_name: model_id })).body.id
}
const ask = (session: string, message: Json): Promise<Answer> =>
  post(`/v1/sessions/${session}/messages?wait=60`, message)

describe.each(protocols)('a session with a provider of type $type', ({ type, model, back, start }) => {
  let fake: FakeProvider<unknown>
  let session: string
  let turn: Json
  let events: Json[]
  beforeAll(async () => {
    fake = await start(ANSWERS)
    const id = await addModel(await addProvider(type, fake.baseUrl), model)
    const agent = { name: 'A', system_prompt: 'Help.', capabilities: [{ ref: 'test_math' }], default_model_id: id }
    session = await createSession(service.url, agent)
    const image = { type: 'image', base64: PNG, media_type: 'image/png' }
    const content = [{ type: 'text', text: 'What is 6 x 7?' }, image]
    const first = await ask(session, { message: { content }, controls: { reasoning: { effort: 'low' } } })
    turn = first.body.turn
    await ask(session, textMessage('Are you sure?'))
    events = (await get(`/v1/sessions/${session}/events`)).data
  })
  afterAll(() => fake.close())
  const dataOf = (type: string): Json[] => events.filter((event) => event.type === type).map(({ data }) => data)

  it('thinks, calls a tool and answers', async () => {
    expect(turn).toMatchObject({ status: 'completed', iterations: 2 })
    expect(dataOf('reason.thinking.completed')).toMatchObject([{ thinking: 'Six times seven.' }])
    expect(dataOf('tool.completed')).toMatchObject([{ tool_call_id: 'call_1', success: true }])
    const texts = (await get(`/v1/sessions/${session}/messages`)).data
      .filter(({ role }: Json) => role === 'agent')
      .map(({ content }: Json) => content.find((part: Json) => part.type === 'text')?.text)
    expect(texts).toEqual([undefined, 'It is 42.', 'Still 42.'])
  })

  it('gives the provider its own data back, in the same turn and in the next, and shows it to nobody else', async () => {
    expect(fake.requests).toHaveLength(3)
    expect(JSON.stringify(fake.requests[0]?.body)).toContain(PNG)
    expect(JSON.stringify(fake.requests[0]?.body)).not.toContain(SIGNED)
    for (const { body } of fake.requests.slice(1)) {
      expect(partsOf(body)).toEqual(expect.arrayContaining([expect.objectContaining(back)]))
    }
    expect(JSON.stringify(events)).not.toMatch(/provider_data|encrypted_content|thoughtSignature/)
  })

  it('tells usage and cost of each call, summed in turn, session and agent', async () => {
    const generations = dataOf('llm.generation').map(({ metadata }) => metadata)
    expect(generations).toHaveLength(3)
    for (const metadata of generations) {
      expect(metadata).toMatchObject({ model, provider: type, success: true, response_id: expect.any(String) })
      expect(metadata).toMatchObject({
        time_to_first_token_ms: expect.any(Number),
        finish_reasons: [expect.any(String)],
      })
      expect(metadata.usage).toMatchObject({ input_tokens: 7, output_tokens: 3, cache_read_tokens: 2 })
      expect(metadata.cost_usd).toMatch(/^0\.0+[1-9]\d*$/)
      expect(metadata.max_output_tokens).toBeGreaterThan(1000)
      // The prompt can be composed again, and compared.
      const { body } = await post('/v1/agents/preview', {
        system_prompt: 'Help.',
        capabilities: [{ ref: 'test_math' }],
      })
      expect(hash('sha256', body.system_prompt)).toBe(metadata.system_prompt_sha256)
      expect(body.system_prompt_sha256).toBe(metadata.system_prompt_sha256)
    }
    expect(generations.map(({ reasoning_effort }) => reasoning_effort)).toEqual(['low', 'low', undefined])
    const [first, second, third] = generations.map(({ cost_usd }): string => cost_usd)
    const ofTurn = addCosts(first ?? null, second ?? null)
    expect(dataOf('turn.completed')[0].cost_usd).toBe(ofTurn)
    expect((await get(`/v1/sessions/${session}/turns/${turn.id}`)).cost_usd).toBe(ofTurn)
    const all = addCosts(ofTurn, third ?? null)
    const { cost_usd, usage, agent_id } = await get(`/v1/sessions/${session}`)
    expect([cost_usd, usage.input_tokens]).toEqual([all, 21])
    expect((await get(`/v1/agents/${agent_id}`)).cost_usd).toBe(all)
  })

  it('keeps the key out of the record and of Temporal', async () => {
    const { db } = service.platform.deps
    const [rows] = await db.$queryRaw<{ text: string }[]>`SELECT string_agg(data::text, ' ') AS text FROM events`
    const history = await withClient(service, async (client) => {
      const handle = client.workflow.getHandle(turn.id)
      return readable([await handle.fetchHistory(), (await handle.describe()).raw])
    })
    for (const text of [rows?.text, history, JSON.stringify(await get('/v1/llm-providers'))]) {
      expect(text?.length).toBeGreaterThan(100)
      expect(text).not.toContain(KEY)
    }
    const sent = Object.values(fake.requests[0]?.headers ?? {}).join()
    expect(sent).toContain(KEY)
  })
})

describe.each(protocols)('an answer that a provider of type $type cut', ({ type, model, cut, start }) => {
  it('is marked in message, turn and events, and the next one is not', async () => {
    const fake = await start([{ text: ['It is'], finishReason: cut }, { text: ['It is 42.'] }])
    const model_id = await addModel(await addProvider(type, fake.baseUrl), model)
    const session = await createSession(service.url, undefined, { model_id })
    const { body } = await ask(session, textMessage('What is 6 x 7?'))
    expect(body).toMatchObject({
      turn: { status: 'completed', finish_reason: 'length' },
      output: { metadata: { finish_reason: 'length' } },
    })
    const { data } = await get(`/v1/sessions/${session}/events?types=output.message.completed&types=turn.completed`)
    expect(data).toMatchObject([
      { data: { message: { metadata: { finish_reason: 'length' } } } },
      { data: { finish_reason: 'length' } },
    ])
    const next = (await ask(session, textMessage('Go on.'))).body
    expect([next.turn.finish_reason, next.output.metadata]).toEqual([null, { model }])
    await fake.close()
  })
})

/** Returns all objects in a JSON value. */
function partsOf(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return []
  return [value, ...Object.values(value).flatMap(partsOf)]
}

describe('the cost of a session', () => {
  it('is by the model of each call, and unknown from the first call whose price is unknown', async () => {
    const fake = await startProvider(chatCompletions, () => ({ text: ['Hi.'] }))
    const provider = await addProvider('openai_completions', fake.baseUrl)
    const known = await addModel(provider, 'gpt-5-mini')
    const dearer = await addModel(provider, 'gpt-5')
    const unknown = await addModel(provider, 'a-model-of-nobody')
    const session = await createSession(service.url)
    const costs: (string | null)[] = []
    for (const model_id of [known, dearer, unknown, known]) {
      const { body } = await ask(session, textMessage('Hi', { controls: { model_id } }))
      costs.push(body.turn.cost_usd, (await get(`/v1/sessions/${session}`)).cost_usd)
    }
    // 7 tokens in and 3 out, at 0.25 and 2, and at 1.25 and 10 USD a million.
    const [small, large] = ['0.00000775', '0.00003875']
    expect(costs).toEqual([small, small, large, '0.0000465', null, null, small, null])
    await fake.close()
  })
})

describe('a budget in USD', () => {
  it('counts calls by their prices, and refuses those whose price is unknown, unless the installation lets them pass', async () => {
    const fake = await startProvider(chatCompletions, () => ({ text: ['Hi.'] }))
    const provider = await addProvider('openai_completions', fake.baseUrl)
    const known = await addModel(provider, 'gpt-5-mini')
    const agent = { name: 'A', system_prompt: 'B', default_model_id: await addModel(provider, 'a-model-of-nobody') }
    const session = await createSession(service.url, agent)
    const { agent_id } = await get(`/v1/sessions/${session}`)
    const budget = (await post('/v1/budgets', { scope: 'agent', agent_id, limit_usd: '0.5' })).body
    const turn = async (more: Record<string, unknown> = {}) => (await ask(session, textMessage('Hi', more))).body.turn
    const task = () =>
      call(
        service.url,
        'POST',
        '/v1/chat/completions',
        { model: agent_id, messages: [{ role: 'user', content: 'A title' }] },
        { 'X-Task': 'title' },
      )

    expect(await turn()).toMatchObject({ status: 'failed', error_code: 'price_unknown' })
    expect(await task()).toMatchObject({
      status: 409,
      body: { error: { message: /price of the agent's model is unknown/ } },
    })
    expect(await turn({ controls: { model_id: known } })).toMatchObject({ status: 'completed', cost_usd: '0.00000775' })
    const { limits } = service.platform.deps
    Object.assign(limits, { mayBeUnpriced: true })
    expect(await turn()).toMatchObject({ status: 'completed', cost_usd: null })
    expect((await task()).status).toBe(200)
    expect(await get(`/v1/budgets/${budget.id}`)).toMatchObject({ spent_usd: '0.00000775', reserved_usd: '0' })
    const { total } = await get(`/v1/usage?agent_id=${agent_id}`)
    expect(total).toMatchObject({ calls: 3, unpriced_calls: 2, cost_usd: '0.00000775' })
    Object.assign(limits, { mayBeUnpriced: false })
    await post(`/v1/budgets`, { scope: 'agent', agent_id, limit_tokens: 1 })
    expect(await task()).toMatchObject({ status: 409, body: { error: { message: /budget of 1 tokens is used up/ } } })
    await fake.close()
  })
})

describe('what a provider says', () => {
  it('is recorded, whatever its characters and however much it counts', async () => {
    const fake = await startProvider(responses, [
      { blocks: [{ type: 'text', deltas: ['Hi.'] }], finishReason: `nul \0 half \ud83d ${KEY}`, usage: HUGE },
    ])
    const model_id = await addModel(await addProvider('openai', fake.baseUrl), 'm')
    const session = await createSession(service.url, undefined, { model_id })
    const { body } = await ask(session, textMessage('Hi'))
    expect(body.turn).toMatchObject({ status: 'completed', usage: { input_tokens: 1_000_000_000 } })
    const { data } = await get(`/v1/sessions/${session}/events`)
    const { metadata } = data.find(({ type }: Json) => type === 'llm.generation').data
    expect(metadata.finish_reasons[0]).not.toContain(KEY)
    await fake.close()
  })

  it('may be more than 2,147,483,647 tokens in a turn', async () => {
    const call_ = { id: 'c', name: 'multiply', arguments: '{"a":1,"b":1}' }
    const fake = await startProvider(responses, (_, index) =>
      index < 3 ? { toolCalls: [call_], usage: HUGE } : { text: ['Done.'], usage: HUGE },
    )
    const model_id = await addModel(await addProvider('openai', fake.baseUrl), 'm')
    const agent = { name: 'A', system_prompt: 'B', capabilities: [{ ref: 'test_math' }], default_model_id: model_id }
    const { body } = await ask(await createSession(service.url, agent), textMessage('Hi'))
    expect(body.turn).toMatchObject({ status: 'completed', usage: { input_tokens: 4_000_000_000 } })
    await fake.close()
  })

  it('is not asked for with a key that is damaged', async () => {
    const provider = await addProvider('openai', list.baseUrl)
    const session = await createSession(service.url, undefined, { model_id: await addModel(provider, 'm') })
    const { db } = service.platform.deps
    await db.$executeRaw`UPDATE llm_providers SET api_key = set_byte(api_key, 40, 255 - get_byte(api_key, 40))
      WHERE id = ${toUuid(provider.slice(provider.lastIndexOf('/') + 1))}::uuid`
    const { body } = await ask(session, textMessage('Hi'))
    expect(body.turn).toMatchObject({ status: 'failed', error: expect.stringContaining('key of Fake is damaged') })
    expectError(await post(`${provider}/sync-models`, undefined), 409, /key of Fake is damaged/)
  })
})

describe('a change of a provider', () => {
  it('is used by the next call: key, address, and a key that is removed', async () => {
    const fakes = await Promise.all([1, 2].map(() => startProvider(chatCompletions, () => ({ text: ['Hi.'] }))))
    const [first, second] = fakes
    const provider = await addProvider('openai_completions', first?.baseUrl ?? '')
    const session = await createSession(service.url, undefined, { model_id: await addModel(provider, 'm') })
    const change = (body: object) => call(service.url, 'PATCH', provider, body)
    await ask(session, textMessage('1'))
    await change({ api_key: 'sk-the-second-key-0123456789' })
    await ask(session, textMessage('2'))
    await change({ base_url: `${second?.baseUrl}/`, api_key: '' })
    await ask(session, textMessage('3'))
    const sent = fakes.map(({ requests }) => requests.map(({ headers }) => headers.authorization))
    expect(sent).toEqual([[`Bearer ${KEY}`, 'Bearer sk-the-second-key-0123456789'], [undefined]])
    await Promise.all(fakes.map((fake) => fake.close()))
  })
})

describe('a sync of models', () => {
  const sync = (provider: string) => call(service.url, 'POST', `${provider}/sync-models`)
  const names = async (provider: string, query = ''): Promise<string[]> =>
    (await get(`${provider}/models${query}`)).data.map(({ model_id }: Json) => model_id)

  it('adds what is new, hides what is gone and finds it again, and keeps what people have written', async () => {
    const provider = await addProvider('openai', list.baseUrl)
    await addModel(provider, 'by-hand')
    list.answer = openaiList('a', 'b', 'by-hand')
    expect((await sync(provider)).body).toEqual({ status: 'success', created: 2, updated: 1, stale: 0 })
    expect(await names(provider)).toEqual(['by-hand', 'a', 'b'])
    const [, a] = (await get(`${provider}/models`)).data
    await call(service.url, 'PATCH', `/v1/llm-models/${a.id}`, { display_name: 'Ours', is_favorite: true })
    list.answer = openaiList('b', 'c')
    expect((await sync(provider)).body).toEqual({ status: 'success', created: 1, updated: 1, stale: 1 })
    expect(await names(provider)).toEqual(['by-hand', 'b', 'c'])
    expect(await names(provider, '?include_stale=true')).toEqual(['by-hand', 'a', 'b', 'c'])
    const hidden = (await get('/v1/llm-models?include_stale=true&favorites_only=true')).data
    expect(hidden).toMatchObject([{ model_id: 'a', display_name: 'Ours', is_stale: true, source: 'discovered' }])
    list.answer = openaiList('a')
    expect((await sync(provider)).body).toEqual({ status: 'success', created: 0, updated: 1, stale: 2 })
    expect((await get(`/v1/llm-models/${a.id}`)).is_stale).toBe(false)
    expect(Date.parse((await get(provider)).last_synced_at)).toBeGreaterThan(Date.now() - 60_000)
  })

  it('takes 5,000 models, one sync of an organization at a time', async () => {
    const provider = await addProvider('openai', list.baseUrl)
    list.answer = openaiList(...Array.from({ length: 5000 }, (_, index) => `model-${index}`))
    const answers = await Promise.all([sync(provider), sync(provider)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429])
    expect(answers.map(({ body }) => body.created ?? 0).sort()).toEqual([0, 5000])
    expect(await names(provider)).toHaveLength(5000)
    expectError(await post(`${provider}/models`, { model_id: 'x', display_name: 'X' }), 409, /has 5000 models/)
    list.answer = openaiList('one-more')
    expect((await sync(provider)).body).toEqual({ status: 'success', created: 1, updated: 0, stale: 5000 })
    // The longest stale model made room.
    expect(await names(provider, '?include_stale=true')).toHaveLength(5000)
  })

  it.each<[what: string, answer: ListServer['answer'], sentence: RegExp]>([
    [
      'refuses its key',
      (response) => response.writeHead(401).end(`{"error":{"message":"Bad key ${KEY}"}}`),
      /^Fake answered 401: Bad key \[key\]$/,
    ],
    ['is broken', (response) => response.writeHead(500).end('no'), /^Fake answered 500/],
    ['sends something else', (response) => response.end('<html>'), /did not answer with a list of models/],
    ['hangs up', (response) => response.destroy(), /^The connection to Fake broke off\.$/],
    ['redirects', (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), /redirects/],
  ])('says why when the provider %s, and changes nothing', async (_, answer, sentence) => {
    const provider = await addProvider('openai', list.baseUrl)
    list.answer = openaiList('a')
    await sync(provider)
    list.answer = answer
    const refused = await sync(provider)
    expectError(refused, 502, sentence)
    expect(refused.body.error).not.toContain(KEY)
    // A form shows the sentence at this field.
    expect(refused.body.field).toBe(/ answered 401: /.test(refused.body.error) ? 'api_key' : undefined)
    expect(await names(provider)).toEqual(['a'])
  })

  it('is refused when the provider was changed meanwhile', async () => {
    const provider = await addProvider('openai', list.baseUrl)
    list.answer = async (response) => {
      await call(service.url, 'PATCH', provider, { base_url: `${list.baseUrl}/elsewhere` })
      openaiList('a')(response)
    }
    expectError(await sync(provider), 409, /was changed while its models were listed/)
    expect(await names(provider)).toEqual([])
  })

  it('is not supported by the simulator, or by a provider without a list', async () => {
    const simulator = '/v1/llm-providers/provider_01933b5a000070008000000000000101'
    expect((await sync(simulator)).body).toEqual({ status: 'not_supported' })
    list.answer = (response) => response.writeHead(404).end()
    expect((await sync(await addProvider('anthropic', list.baseUrl))).body).toEqual({ status: 'not_supported' })
  })
})
