import { call, createSession, type Json, textMessage, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import {
  type FakeOpenai,
  type FakeOpenaiAnswer,
  type FakeOpenaiRequest,
  startFakeOpenai,
} from '../support/providers/chat-completions.ts'
import { expectSoundRecord, textOf, turnsOf, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'

const CALLS: FakeOpenaiAnswer = {
  text: ['Let me see.'],
  toolCalls: [
    { id: 'one', name: 'echo', arguments: '{"text":"x"}' },
    { id: 'two', name: 'fail', arguments: '{"text":"why"}' },
  ],
}
const ANSWER: FakeOpenaiAnswer = { text: ['A whole', ' answer'] }
const OVERLOADED: FakeOpenaiAnswer = { status: 503, message: 'overloaded', headers: { 'retry-after-ms': '20' } }

const lab = createLab()
/** Remaining answers for each session by the text of its first message, because the tests run at once. */
const answers = new Map<string, FakeOpenaiAnswer[]>()
let provider: FakeOpenai
let service: TestService
beforeAll(async () => {
  provider = await startFakeOpenai(
    (request) => answers.get(firstTextOf(request))?.shift() ?? { status: 400, message: 'asked once too often' },
  )
  service = await startService({
    capabilities: [lab.capability],
    environment: {
      DEFAULT_OPENAI_API_KEY: 'sk-x',
      DEFAULT_OPENAI_BASE_URL: provider.baseUrl,
      LLM_IDLE_TIMEOUT_SECS: '4',
    },
  })
})
afterAll(async () => {
  await service.stop()
  await provider.close()
})

const firstTextOf = ({ body }: FakeOpenaiRequest): string =>
  String(body.messages.find(({ role }) => role === 'user')?.content)
const requestsOf = (text: string) => provider.requests.filter((request) => firstTextOf(request) === text)

/** Returns the answer with `text` as its tools' argument, which identifies their runs in the lab. */
function ownCalls(answer: FakeOpenaiAnswer, text: string): FakeOpenaiAnswer {
  if (typeof answer === 'string' || !('toolCalls' in answer) || !answer.toolCalls) return answer
  return { ...answer, toolCalls: answer.toolCalls.map((one) => ({ ...one, arguments: JSON.stringify({ text }) })) }
}

/** Runs a session with one message that the provider answers as given. Expects its tools to have run once. */
async function ask(...given: FakeOpenaiAnswer[]): Promise<{ id: string; text: string; events: Json[] }> {
  const text = `Hello ${answers.size}`
  answers.set(
    text,
    given.map((answer) => ownCalls(answer, text)),
  )
  const id = await createSession(service.url, undefined, { capabilities: [{ ref: 'lab' }] })
  await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage(text))
  const events = await waitUntilIdle(service.url, id)
  expectSoundRecord(events)
  expect(answers.get(text)).toEqual([])
  const runs = lab.runs.filter(({ args }) => args.text === text)
  expect(runs.map(({ tool }) => tool).sort()).toEqual(['echo', 'fail'])
  expect(count(events, 'tool.completed')).toBe(2)
  expect(count(events, 'act.completed')).toBe(1)
  return { id, text, events }
}

const count = (events: Json[], type: string): number => typesOf(events).filter((other) => other === type).length
const generations = (events: Json[]): Json[] =>
  events.filter(({ type }) => type === 'llm.generation').map(({ data }) => data.metadata)
const startsOf = (events: Json[]): number[] =>
  events.filter(({ type }) => type === 'output.message.started').map(({ ts }) => Date.parse(ts))

function expectAnswered(events: Json[], starts: number): void {
  expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 2 } })
  expect(startsOf(events)).toHaveLength(starts)
  expect(textOf(events.findLast(({ type }) => type === 'output.message.completed').data.message)).toBe('A whole answer')
}

describe('a provider that fails once the tools have run', () => {
  it.concurrent('is retried with the same results, and no tool runs again', async () => {
    const { text, events } = await ask(CALLS, OVERLOADED, OVERLOADED, ANSWER)
    expectAnswered(events, 4)
    expect(generations(events)[1]).toMatchObject({ success: true, retry: { attempts: 2 } })
    const [first, second, third] = requestsOf(text)
      .slice(-3)
      .map(({ body }) => body.messages)
    expect(second).toEqual(first)
    expect(third).toEqual(first)
    expect(first?.map(({ role }) => role)).toEqual(expect.arrayContaining(['user', 'assistant', 'tool', 'tool']))
  })

  it.concurrent('is retried no sooner than it allows', async () => {
    const { events } = await ask(CALLS, { status: 429, message: 'slow', headers: { 'retry-after': '1' } }, ANSWER)
    expectAnswered(events, 3)
    const [, second = 0, third = 0] = startsOf(events)
    expect(third - second).toBeGreaterThanOrEqual(1000)
    expect(generations(events)[1].retry).toEqual({ attempts: 1, total_wait_ms: 1000 })
  })

  it.concurrent('half-way through its second answer, in each of three ways, starts that one over', async () => {
    const half = { text: ['Half', ' an'], pauseMs: 40 }
    const broken: FakeOpenaiAnswer[] = [
      { ...half, end: 'broken' },
      { ...half, end: 'cut_off' },
      { ...half, end: 'stalled' },
    ]
    const { events } = await ask(CALLS, ...broken, ANSWER)
    expectAnswered(events, 5)
  })

  it.concurrent('half-way through a tool call leaves no partial call behind', async () => {
    const { events } = await ask({ ...CALLS, end: 'cut_off' }, { ...CALLS, end: 'broken' }, CALLS, ANSWER)
    expectAnswered(events, 4)
    expect(count(events, 'act.started')).toBe(1)
  })

  it.concurrent('permanently fails the turn with its reason, and the results are kept for the next one', async () => {
    const { id, text, events } = await ask(CALLS, ...Array(5).fill(OVERLOADED))
    expect(startsOf(events)).toHaveLength(6)
    expect(typesOf(events).slice(-4)).toEqual(['llm.generation', 'reason.completed', 'turn.failed', 'session.idled'])
    expect(events.at(-2).data).toMatchObject({ error_code: 'llm_error', error: expect.stringContaining('overloaded') })
    answers.set(text, [ANSWER])
    await call(service.url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('Again?'))
    const roles = requestsOf(text)
      .at(-1)
      ?.body.messages.map(({ role }) => role)
    expect(roles?.slice(1)).toEqual(['user', 'assistant', 'tool', 'tool', 'user'])
    const record = await waitUntilIdle(service.url, id)
    expectSoundRecord(record)
    expect(turnsOf(record)).toHaveLength(2)
    expect(record.at(-2).type).toBe('turn.completed')
  })

  it.concurrent('with a refusal is not retried', async () => {
    const { events } = await ask(CALLS, { status: 400, message: 'too long' })
    expect(startsOf(events)).toHaveLength(2)
    expect(events.at(-2).data).toMatchObject({ error_code: 'llm_error', error: expect.stringContaining('too long') })
  })

  it.concurrent('by never answering is given up after the limit, five times', async () => {
    const { events } = await ask(CALLS, ...Array(5).fill('silent'))
    expect(startsOf(events)).toHaveLength(6)
    expect(events.at(-2)).toMatchObject({
      type: 'turn.failed',
      data: { error: expect.stringContaining('said nothing') },
    })
  })

  it.concurrent('has the same number of retries in each step', async () => {
    const { events } = await ask(...Array(4).fill(OVERLOADED), CALLS, ...Array(4).fill(OVERLOADED), ANSWER)
    expectAnswered(events, 10)
    expect(generations(events).map(({ retry }) => retry.attempts)).toEqual([4, 4])
  })
})
