import { call, createSession, type Json, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { anthropicMessages } from '../support/providers/anthropic-messages.ts'
import { chatCompletions } from '../support/providers/chat-completions.ts'
import type { Content } from '../support/providers/content.ts'
import { geminiStream } from '../support/providers/gemini-stream.ts'
import { responses } from '../support/providers/responses.ts'
import { type FakeProvider, startProvider } from '../support/providers/scripted-server.ts'
import { expectSoundRecord } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { readable, withClient } from '../support/temporal.ts'
import { cancel, getTurn, guardedTool, listTurns, post, postAndAsk, submit, turnIdOf } from '../support/turns.ts'
import { createVault } from '../support/vault.ts'

/** Every planted value has this mark, for which the check of logs looks as well. */
const MARK = 'text-of-a-test'
const NUMBER = 4_815_162_342
const PLANTED = [MARK, String(NUMBER)]
const secret = (name: string) => `${MARK} "${name}" \\ é`

const vault = createVault()
const fakes: FakeProvider<unknown>[] = []
const sessions: string[] = []
let service: TestService
beforeAll(async () => {
  service = await startService({
    environment: { ALLOW_PRIVATE_NETWORK: 'true' },
    capabilities: [vault.capability],
  })
})
// In whatever order the tests run, these come after what all of them have planted.
afterAll(() => expectSealedInTables())
afterAll(() => expectSealedElsewhere())
afterAll(async () => {
  for (const fake of fakes) await fake.close()
  await service.stop()
})

const create = async (path: string, body: object): Promise<string> => {
  const answer = await call(service.url, 'POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.id
}

type Played =
  | (Omit<Content, 'usage'> & { chunks?: unknown[] })
  | { status: number; message: string; headers?: Record<string, string> }
const starts = {
  openai_completions: (answers: Played[]) => startProvider(chatCompletions, answers),
  openai: (answers: Played[]) => startProvider(responses, answers),
  anthropic: (answers: Played[]) => startProvider(anthropicMessages, answers),
  gemini: (answers: Played[]) => startProvider(geminiStream, answers),
}

/** Creates a session whose model is a server that gives these answers. The agent's prompt has nothing of them. */
async function createPlayed(answers: Played[], agent: object = {}, type: keyof typeof starts = 'openai_completions') {
  const fake: FakeProvider<unknown> = await starts[type](answers)
  fakes.push(fake)
  const provider = { name: 'Fake', provider_type: type, base_url: fake.baseUrl, api_key: 'sk-x' }
  const providerId = await create('/v1/llm-providers', provider)
  const model = { model_id: 'a-model', display_name: 'A model' }
  const default_model_id = await create(`/v1/llm-providers/${providerId}/models`, model)
  const id = await createSession(service.url, { default_model_id, capabilities: [{ ref: 'vault' }], ...agent })
  sessions.push(id)
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  return { id, stream, asked: (index: number) => JSON.stringify(fake.requests[index]?.body) }
}

const calling = (name: string, args: unknown, id = 'one') => ({
  toolCalls: [{ id, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) }],
})
const DONE: Played = { text: ['done'] }

async function say(id: string, text = 'Go'): Promise<Json[]> {
  const once = { 'Idempotency-Key': `${id}-${text}` }
  const { status } = await call(service.url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage(text), once)
  expect(status).toBe(200)
  const events = await waitUntilIdle(service.url, id)
  expectSoundRecord(events)
  return events
}

/** Returns the text as it stands in JSON, and in JSON in JSON. */
const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)
const expectGiven = (request: string, value: string) => {
  const once = escaped(value)
  expect([once, escaped(once), escaped(escaped(once))].some((form) => request.includes(form))).toBe(true)
}
const dataOf = (events: Json[], type: string): Json[] =>
  events.filter((event) => event.type === type).map(({ data }) => data)
const argsOf = (callId: string): Json[] => vault.runs.filter((run) => run.callId === callId).map(({ args }) => args)
const MASKED = { name: 'pin', value: '[secret]' }

describe('the secrets of a call', () => {
  it('come from secret_store, which keeps them from one turn to the next', async () => {
    const value = secret('kept')
    const answers = [
      calling('secret_store', { operation: 'set', name: 'pin', value }),
      DONE,
      calling('secret_store', { operation: 'get', name: 'pin' }, 'two'),
      DONE,
    ]
    const { id, asked } = await createPlayed(answers, { capabilities: [{ ref: 'session_storage' }] })
    await say(id)
    const events = await say(id, 'What is it?')
    expectGiven(asked(1), value)
    // Of the call that has set it, and of the result that has read it.
    expect([2, 3].map((index) => asked(index).split(MARK).length - 1)).toEqual([1, 2])
    expect(dataOf(events, 'tool.completed').map(({ result }) => JSON.parse(result[0].text))).toEqual([
      { name: 'pin', replaced: false },
      { name: 'pin', found: true, value: '[secret]' },
    ])
    expect((await call(service.url, 'GET', `/v1/sessions/${id}/storage/secrets`)).body.data).toMatchObject([
      { name: 'pin' },
    ])
  })

  it.each(Object.keys(starts) as (keyof typeof starts)[])('are given to the tool and a model of %s', async (type) => {
    const value = secret(type)
    const keep = { name: 'keep', id: `keep-${type}`, arguments: JSON.stringify({ name: 'pin', value }) }
    const answers = [
      { blocks: [{ type: 'call' as const, ...keep, signature: 'signed' }], toolCalls: [keep] },
      DONE,
      { text: ['Still here'] },
    ]
    const { id, stream, asked } = await createPlayed(answers, {}, type)
    await say(id)
    const events = await say(id, 'And now?')
    const callId = dataOf(events, 'tool.started')[0].tool_call.id
    expect(argsOf(callId).at(-1)).toEqual({ name: 'pin', value })
    // The call and its result, in the same turn and in the next.
    for (const index of [1, 2]) {
      expectGiven(asked(index), value)
      expect(asked(index).split(MARK)).toHaveLength(3)
    }
    const toolCall = { id: callId, name: 'keep', arguments: MASKED }
    const result = { ...MASKED, literal: '[secret]' }
    expect(dataOf(events, 'tool.started')[0].tool_call).toEqual(toolCall)
    expect(JSON.parse(dataOf(events, 'tool.completed')[0].result[0].text)).toEqual(result)
    expect(dataOf(events, 'output.message.completed')[0].message.content).toEqual([{ type: 'tool_call', ...toolCall }])
    const [generation, , next] = dataOf(events, 'llm.generation')
    expect(generation.output.tool_calls).toEqual([toolCall])
    expect(next.messages[1].content).toEqual([{ type: 'tool_call', ...toolCall }])
    expect(next.messages[2].content[0]).toMatchObject({ result })
    const { body } = await call(service.url, 'GET', `/v1/sessions/${id}/messages`)
    expect(body.data.slice(1, 3).map(({ content }: Json) => content)).toEqual(
      next.messages.slice(1, 3).map(({ content }: Json) => content),
    )
    expect(JSON.stringify(events)).not.toContain('secret_tokens')
    await stream.until((frame) => frame.data?.sequence === events.at(-1).sequence)
    expect(stream.events()).toEqual(events)
  })

  it.each<[string, unknown]>([
    ['a number', NUMBER],
    ['an object', { [secret('key')]: [secret('item'), null] }],
    ['a list', [NUMBER, secret('listed')]],
    ['null', null],
    ['the mask itself', '[secret]'],
  ])('may be %s', async (_name, value) => {
    const callId = `value-${vault.runs.length}`
    const { id, asked } = await createPlayed([calling('keep', { value, name: 'pin' }, callId), DONE])
    const events = await say(id)
    expect(argsOf(callId)).toEqual([{ name: 'pin', value }])
    expect(dataOf(events, 'tool.started')[0].tool_call.arguments).toEqual(MASKED)
    const [, given, result] = JSON.parse(asked(1)).messages.slice(-3)
    expect(JSON.parse(given.tool_calls[0].function.arguments)).toEqual({ value, name: 'pin' })
    expect(JSON.parse(result.content)).toEqual({ name: 'pin', value, literal: '[secret]' })
  })

  it('are shown neither to who approves the call nor with the turn that waits', async () => {
    const value = secret('approved')
    const agent = { tools: [guardedTool('keep')] }
    const { id, stream, asked } = await createPlayed([calling('keep', { name: 'pin', value }, 'guarded'), DONE], agent)
    const { pending_tool_calls } = await postAndAsk(service.url, id)
    const requested = { id: 'guarded', name: 'keep', arguments: MASKED, kind: 'approval' }
    expect(pending_tool_calls).toEqual([requested])
    const frame = await stream.until(({ event }) => event === 'tool.call_requested')
    expect(frame.data.data.tool_calls).toEqual([requested])
    await submit(service.url, id, [{ tool_call_id: 'guarded', result: { approved: true } }])
    await waitUntilIdle(service.url, id)
    expect(argsOf('guarded')).toEqual([{ name: 'pin', value }])
    expectGiven(asked(1), value)
  })

  it('are still given to the model after the call was cancelled', async () => {
    const value = secret('cancelled')
    const { id, asked } = await createPlayed([calling('block', { value }, 'cancelled'), DONE])
    const turnId = turnIdOf(await post(service.url, id))
    await waitFor(async () => argsOf('cancelled').length > 0, 'the tool to run')
    await cancel(service.url, id)
    expect(await getTurn(service.url, id, turnId)).toMatchObject({ status: 'cancelled' })
    const events = await say(id)
    expect(dataOf(events, 'tool.completed')).toMatchObject([{ status: 'cancelled', result: null }])
    expectGiven(asked(1), value)
  })

  it('are given to a tool that is run again, and not to the log', async () => {
    const value = secret('again')
    const { id } = await createPlayed([calling('stumble', { value }, 'again'), DONE])
    const events = await say(id)
    expect(argsOf('again')).toEqual([{ value }, { value }])
    expect(dataOf(events, 'tool.completed')).toMatchObject([{ success: true }])
  })

  it('count when a conversation is cut, which events show as the model was given it', async () => {
    const fill = (n: number) => calling('fill', { name: `${n}`, value: `${n} ${MARK}` }, `fill-${n}`)
    const { id, stream, asked } = await createPlayed([fill(1), fill(2), DONE])
    const events = await say(id)
    const { messages, metadata } = dataOf(events, 'llm.generation').at(-1)
    expect(metadata.compaction.input_tokens_before).toBeGreaterThan(128_000)
    expect(metadata.compaction.input_tokens_after).toBeLessThan(128_000)
    const results = messages.flatMap(({ role, content }: Json) => (role === 'tool_result' ? [content[0].result] : []))
    expect(results).toEqual([expect.stringContaining('removed to save space'), { name: '2', value: '[secret]' }])
    const given = JSON.parse(asked(2)).messages.filter(({ role }: Json) => role === 'tool')
    expect(given[0].content).toBe(results[0])
    expect(JSON.parse(given[1].content)).toEqual({ name: '2', value: `2 ${MARK}`.repeat(20_000) })
    // Those in arguments remain.
    expect(asked(2).split(`1 ${MARK}`)).toHaveLength(2)
    await stream.until(({ event }) => event === 'session.idled')
    expect(stream.events()).toEqual(events)
  })
})

describe('what a tool and its check say about a call', () => {
  const value = secret('quoted')
  it.each<[string, string, unknown, RegExp]>([
    ['a tool that fails', 'refuse', { value }, /^cannot keep \[secret\], or \{"value":"\[secret\]"\}$/],
    ['a tool that breaks', 'crash', { value }, /^The tool failed because of an error/],
    ['arguments that are no JSON', 'keep', `{"value": ${value}`, /^The arguments are not a JSON object\.$/],
    ['arguments cut off', 'keep', `{"value": "${MARK}`, /^The arguments are not a JSON object\.$/],
    ['arguments that are no object', 'keep', JSON.stringify([value]), /^The arguments are not a JSON object\.$/],
    ['a misspelt field', 'keep', { valeu: value }, /valeu is not one of the fields/],
    [
      'a value of another type',
      'keep_counts',
      { value: { [secret('name')]: 'x' } },
      /: a part of value must be integer\.$/,
    ],
    ['a long one', 'keep_counts', { value: { [value.repeat(20)]: 'x' } }, /: a part of value must be integer\.$/],
    ['a large one', 'keep_counts', { value: { [value]: 'x'.repeat(60_000) } }, /: a part of value must be integer\.$/],
    ['an object in the wrong place', 'keep', { name: { [value]: value } }, /: name must be string\.$/],
  ])('does not quote the secret: %s', async (_name, tool, args, sentence) => {
    const { id, asked } = await createPlayed([calling(tool, args), DONE])
    const events = await say(id)
    const [{ error, success }] = dataOf(events, 'tool.completed')
    expect(error).toMatch(sentence)
    expect(success).toBe(false)
    expect(JSON.stringify(events)).not.toContain(MARK)
    expect(JSON.parse(JSON.parse(asked(1)).messages.at(-1).content)).toEqual({ error })
  })

  const OWN_WORDS = 'The reason is left out, because it may repeat secret values.'
  const lines = Array.from({ length: 5 }, (_, n) => `${n} ${MARK}`.padEnd(64, '+')).join('\n')

  it('does not quote a provider that was given secrets', async () => {
    const { id } = await createPlayed([
      calling('keep', { value: lines }),
      { status: 503, message: `cannot read ${lines}`, headers: { 'retry-after-ms': '1' } },
      { status: 400, message: `cannot read ${lines}` },
    ])
    const events = await say(id)
    expect(dataOf(events, 'reason.retrying')).toMatchObject([{ error: `Fake answered 503. ${OWN_WORDS}` }])
    expect(dataOf(events, 'turn.failed')).toMatchObject([{ error: `Fake answered 400. ${OWN_WORDS}` }])
    expect(JSON.stringify(events)).not.toContain(MARK)
  })

  const error = { message: `cannot go on with ${value}`, code: 400 }
  it.each<[string, Played]>([
    ['the call', { ...calling('keep', { value }), chunks: [{ error }] }],
    ['text', { text: ['I call'], chunks: [{ error }] }],
    ['nothing', { chunks: [{ error }] }],
  ])('does not quote a provider that fails in its answer, after %s', async (_name, failing) => {
    const { id } = await createPlayed([failing])
    const events = await say(id)
    const [{ error: sentence }] = dataOf(events, 'turn.failed')
    expect(sentence).toMatch(/^Fake (answered 400|broke off its answer)\. The reason is left out, because/)
    expect(JSON.stringify(events)).not.toContain(MARK)
  })

  it('quotes a provider that refuses what has no secrets, or has no tool for any', async () => {
    const { id } = await createPlayed([{ status: 400, message: 'no such model' }])
    expect(dataOf(await say(id), 'turn.failed')[0].error).toBe('Fake answered 400: no such model')
    const plain = { ...error, message: 'cannot go on' }
    const other = await createPlayed([{ text: ['I'], chunks: [{ error: plain }] }], { capabilities: [] })
    expect(dataOf(await say(other.id), 'turn.failed')[0].error).toBe('Fake broke off its answer: cannot go on')
  })

  it('hides the arguments of a tool that the agent does not have', async () => {
    const { id } = await createPlayed([calling('keep', { value }), DONE], { capabilities: [] })
    const events = await say(id)
    expect(dataOf(events, 'tool.completed')[0].error).toMatch(/no tool "keep"/)
    expect(dataOf(events, 'tool.started')[0].tool_call.arguments).toEqual({ value: '[secret]' })
  })

  it.each(['functions.keep', 'Keep'])('hides the arguments of %s, a tool that nobody knows', async (name) => {
    const { id, asked } = await createPlayed([calling(name, { name: value, value }), DONE])
    const events = await say(id)
    expect(dataOf(events, 'tool.started')[0].tool_call.arguments).toEqual({ name: '[secret]', value: '[secret]' })
    expect(dataOf(events, 'tool.completed')[0].error).toMatch(/There is no tool/)
    const given = JSON.parse(asked(1)).messages.find(({ tool_calls }: Json) => tool_calls)
    expect(JSON.parse(given.tool_calls[0].function.arguments)).toEqual({ name: value, value })
  })

  it('refuses a call with more secrets than are kept, and goes on', async () => {
    // It sends a call in one piece.
    const answers = [calling('keep', { value: `${MARK} `.repeat(70_000) }), DONE]
    const { id, asked } = await createPlayed(answers, {}, 'gemini')
    const events = await say(id)
    expect(dataOf(events, 'tool.completed')[0].error).toMatch(/more than 1 MiB of secrets/)
    expect(dataOf(events, 'tool.started')[0].tool_call.arguments).toEqual({ value: '[secret]' })
    expect(asked(1)).not.toContain(MARK)
  })

  it('is given to the model whole in a result that is not an object, which cannot be marked', async () => {
    const { id, asked } = await createPlayed([calling('tell', { value: 'plain words' }), DONE])
    await say(id)
    expect(JSON.parse(asked(1)).messages.at(-1).content).toBe('plain words')
  })
})

/** Returns what Redis holds of this service, as text. */
async function readRedis(): Promise<string> {
  const { client } = service.platform.deps.redis
  const keys = await client.keys(`*${service.config.REDIS_PREFIX}*`)
  const values = keys.map(async (key) => {
    const kind = await client.type(key)
    if (kind === 'stream') return client.xrange(key, '-', '+')
    if (kind === 'hash') return client.hgetall(key)
    if (kind === 'string') return client.get(key)
    throw new Error(`nobody reads ${key}, a ${kind}`)
  })
  return JSON.stringify([keys, await Promise.all(values)])
}

/** Returns the tables with a row that has the text, bytes included. */
async function tablesWith(text: string, bytes: Uint8Array = Buffer.from(text)): Promise<string[]> {
  const { db } = service.platform.deps
  const tables = await db.$queryRaw<{ name: string }[]>`
    SELECT table_name::text AS name FROM information_schema.tables
    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`
  const found: string[] = []
  for (const { name } of tables) {
    const rows = await db.$queryRawUnsafe<object[]>(
      `SELECT FROM "${name}" AS one WHERE strpos(one::text, $1) > 0 OR strpos(one::text, $2) > 0 LIMIT 1`,
      text,
      Buffer.from(bytes).toString('hex'),
    )
    if (rows.length > 0) found.push(name)
  }
  return found
}

async function expectSealedInTables(): Promise<void> {
  const { db } = service.platform.deps
  const { value } = await db.callSecret.findFirstOrThrow()
  const kept = await db.sessionSecret.findFirstOrThrow()
  // Shows that texts and bytes are searched.
  expect(await tablesWith('[secret]')).toContain('events')
  expect(await tablesWith('nothing like it', value.subarray(0, 20))).toEqual(['call_secrets'])
  expect(await tablesWith('nothing like it', kept.value.subarray(0, 20))).toEqual(['session_secrets'])
  for (const text of PLANTED) expect(await tablesWith(text)).toEqual([])
}

/** Searches Redis, the answers of the API, Temporal's histories and the log. */
async function expectSealedElsewhere(): Promise<void> {
  const texts = [await readRedis()]
  for (const id of sessions) {
    const session = `/v1/sessions/${id}`
    for (const path of [session, `${session}/events`, `${session}/messages`, `${session}/turns?limit=100`]) {
      texts.push(JSON.stringify((await call(service.url, 'GET', path)).body))
    }
    const turns = await listTurns(service.url, id)
    await withClient(service, async (client) => {
      for (const turn of turns) {
        const handle = client.workflow.getHandle(turn.id)
        texts.push(readable([await handle.fetchHistory(), (await handle.describe()).raw]))
      }
    })
  }
  expect(texts[0]).toContain('[secret]')
  for (const text of PLANTED) expect(texts.filter((one) => one.includes(text))).toEqual([])
  service.logCheck.expectNoSecrets()
}
