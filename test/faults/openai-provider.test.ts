import { call, createSession, type Json, textMessage, waitUntilIdle } from '../support/http.ts'
import { type FakeOpenai, type FakeOpenaiAnswer, startFakeOpenai } from '../support/providers/chat-completions.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'

const KEY = 'sk-do-not-tell-anyone-0123456789'

let answers: FakeOpenaiAnswer[] = []
let provider: FakeOpenai
let service: TestService
beforeAll(async () => {
  provider = await startFakeOpenai(() => answers.shift() ?? { status: 400, message: 'asked once too often' })
  const environment = { DEFAULT_OPENAI_API_KEY: KEY, DEFAULT_OPENAI_BASE_URL: provider.baseUrl }
  service = await startService({ environment: { ...environment, LLM_IDLE_TIMEOUT_SECS: '4' } })
})
afterAll(async () => {
  await service.stop()
  await provider.close()
})

/** Runs a session with one message that the provider answers as given. Returns its record. */
async function ask(...given: FakeOpenaiAnswer[]): Promise<Json[]> {
  answers = given
  const id = await createSession(service.url)
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
  await stream.until((frame) => frame.event === 'session.idled')
  stream.close()
  const events = await waitUntilIdle(service.url, id)
  expect(stream.events()).toEqual(events)
  expectSoundRecord(events)
  const { body } = await call(service.url, 'GET', `/v1/sessions/${id}/turns`)
  expect(JSON.stringify([events, body])).not.toContain(KEY)
  expect(answers).toEqual([])
  return events
}

const find = (events: Json[], type: string): Json => events.find((event) => event.type === type)
const generationOf = (events: Json[]): Json => find(events, 'llm.generation').data.metadata

describe('an OpenAI-compatible provider in the environment', () => {
  it('gives the default model', async () => {
    const { body } = await call(service.url, 'GET', '/v1/llm-models')
    const models = body.data.filter((model: Json) => model.is_default)
    expect(models).toEqual([expect.objectContaining({ provider_type: 'openai_completions', model_id: 'gpt-5-mini' })])
    expect(JSON.stringify(body)).not.toContain(KEY)
  })

  it('streams its answer', async () => {
    const events = await ask({ text: ['Good', ' morning', ' to', ' you'], pauseMs: 60 })
    expect(compactTypes(events)).toEqual(firstTurnTypes())
    expect(events.filter((event) => event.type === 'output.message.delta').length).toBeGreaterThan(1)
    expect(answerOf(events)).toBe('Good morning to you')
    expect(generationOf(events)).toMatchObject({ success: true, usage: { input_tokens: 7, output_tokens: 3 } })
    expect(provider.requests.at(-1)?.headers.authorization).toBe(`Bearer ${KEY}`)
  })

  it('is retried after a failure, no sooner than it allows', async () => {
    // Groq says fractions of seconds, which do not always make whole milliseconds.
    const waits = { status: 429, message: 'slow down', headers: { 'retry-after': '1.0015' } }
    const events = await ask({ status: 500, message: 'oops' }, waits, { text: ['Fine'] })
    expect(answerOf(events)).toBe('Fine')
    expect(generationOf(events).retry.attempts).toBe(2)
    const starts = events.filter((event) => event.type === 'output.message.started').map(({ ts }) => Date.parse(ts))
    expect(starts).toHaveLength(3)
    expect((starts[2] ?? 0) - (starts[1] ?? 0)).toBeGreaterThanOrEqual(1000)
  })

  it('is retried when it breaks off, falls silent or ends without a finish', async () => {
    const events = await ask(
      { text: ['Half', ' an'], pauseMs: 50, end: 'broken' },
      { text: ['Half', ' an'], pauseMs: 50, end: 'cut_off' },
      { text: ['Half', ' an'], end: 'stalled' },
      'silent',
      { text: ['A whole answer'] },
    )
    expect(events.filter(({ type }) => type === 'reason.retrying').map(({ data }) => data.error)).toEqual([
      'The connection to OpenAI-compatible provider broke off.',
      'OpenAI-compatible provider ended its answer before it was finished.',
      'The model said nothing for 4 s.',
      'The model said nothing for 4 s.',
    ])
    expect(compactTypes(events)).toEqual(
      firstTurnTypes('failed_in_text', 'failed_in_text', 'failed_in_text', 'failed_before_text'),
    )
    expect(answerOf(events)).toBe('A whole answer')
  })

  it('shows its error but not its key when it refuses', async () => {
    const events = await ask({ status: 401, message: `Incorrect API key provided: ${KEY}` })
    const { error, error_code } = find(events, 'turn.failed').data
    expect(error_code).toBe('llm_error')
    expect(error).toContain('401')
    expect(error).not.toContain('sk-do-not-tell')
  })
})
