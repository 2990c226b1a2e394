import {
  call,
  createScriptedSession,
  type Json,
  listEvents,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes, turnsOf, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { withClient } from '../support/temporal.ts'
import { cancel, post, turnIdOf, waitForEvent } from '../support/turns.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ environment: { LLM_IDLE_TIMEOUT_SECS: '4' } })
})
afterAll(() => service.stop())

/** Plays a session whose model has these steps, with one message for each. Returns its record. */
async function play(...steps: object[]): Promise<{ id: string; events: Json[] }> {
  const id = await createScriptedSession(service.url, steps)
  for (const _ of steps) await call(service.url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('Go'))
  const events = await waitUntilIdle(service.url, id)
  expectSoundRecord(events)
  return { id, events }
}

const ofType = (events: Json[], type: string): Json[] => events.filter((event) => event.type === type)
const generationOf = (events: Json[]): Json => ofType(events, 'llm.generation')[0].data.metadata

const failedTurnTypes = (attempts: number): string[] => [
  ...firstTurnTypes().slice(0, 5),
  ...Array(attempts - 1)
    .fill(['output.message.started', 'reason.retrying'])
    .flat(),
  'output.message.started',
  'llm.generation',
  'reason.completed',
  'turn.failed',
  'session.idled',
]

const OVERLOADED = { status: 503, message: 'overloaded', retry_after_ms: 20 }

describe('a model that fails', () => {
  it.concurrent('temporarily is retried, and the answer reports the retries', async () => {
    const { events } = await play({ text: 'at last', error: { ...OVERLOADED, times: 2 } })
    expect(compactTypes(events)).toEqual(firstTurnTypes('failed_before_text', 'failed_before_text'))
    expect(answerOf(events)).toBe('at last')
    expect(generationOf(events)).toMatchObject({ success: true, retry: { attempts: 2, total_wait_ms: 40 } })
    const error = 'llmsim answered 503: overloaded'
    expect(ofType(events, 'reason.retrying').map(({ data }) => data)).toEqual([
      { attempt: 1, error, retry_after_ms: 20 },
      { attempt: 2, error, retry_after_ms: 20 },
    ])
  })

  it.concurrent('is retried with growing delays when it does not say how long to wait', async () => {
    const { events } = await play({ text: 'at last', error: { status: 500, message: 'oops', times: 2 } })
    const { retry } = generationOf(events)
    expect(retry.attempts).toBe(2)
    expect(retry.total_wait_ms).toBeGreaterThanOrEqual(750)
    const starts = ofType(events, 'output.message.started').map((event) => Date.parse(event.ts))
    expect((starts[2] ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(retry.total_wait_ms)
  })

  it.concurrent('says so at once in the record and in Temporal, and waits for minutes at most', async () => {
    const error = { status: 429, message: 'slow down', retry_after_ms: 3_600_000, times: 1 }
    const id = await createScriptedSession(service.url, [{ text: 'at last', error }])
    const turnId = turnIdOf(await post(service.url, id))
    const begun = await waitForEvent(service.url, id, 'reason.retrying')
    const [started, retrying] = begun.slice(-2)
    expect(started).toMatchObject({ type: 'output.message.started', context: retrying.context })
    expect(retrying.data).toEqual({
      attempt: 1,
      error: 'llmsim answered 429: slow down (it asks for a pause of 3600 s)',
      retry_after_ms: 300_000,
    })
    await withClient(service, async (client) => {
      const details = () => client.workflow.getHandle(turnId).query('__temporal_workflow_metadata')
      const retrying = /iteration 1 · attempt 1 failed; the model is asked again at 20\d\d-/
      await waitFor(async () => retrying.test(JSON.stringify(await details())), 'the details in Temporal')
    })
    await cancel(service.url, id)
    expect(typesOf(await listEvents(service.url, id)).slice(-2)).toEqual(['turn.cancelled', 'session.idled'])
  })

  it.concurrent('permanently fails the turn with a reason, and the next message is answered', async () => {
    const { id, events } = await play({ error: OVERLOADED }, { text: 'hello again' })
    const failed = events.slice(0, typesOf(events).indexOf('session.idled') + 1)
    expect(typesOf(failed)).toEqual(failedTurnTypes(5))
    const error = 'llmsim answered 503: overloaded'
    expect(generationOf(events)).toMatchObject({ success: false, error })
    const end = { success: false, has_tool_calls: false, tool_call_count: 0, error }
    expect(ofType(events, 'reason.completed')[0].data).toMatchObject(end)
    expect(ofType(events, 'turn.failed')[0].data).toMatchObject({ error, error_code: 'llm_error' })
    const { body } = await call(service.url, 'GET', `/v1/sessions/${id}/turns`)
    expect(body.data[1]).toMatchObject({ status: 'failed', error, error_code: 'llm_error' })
    expect(answerOf(events, turnsOf(events)[1])).toBe('hello again')
    expect(typesOf(events).at(-1)).toBe('session.idled')
  })

  it.concurrent('is not retried when the request is invalid', async () => {
    const { events } = await play({ error: { status: 400, message: 'too long' } })
    expect(typesOf(events)).toEqual(failedTurnTypes(1))
    expect(ofType(events, 'turn.failed')[0].data.error).toBe('llmsim answered 400: too long')
  })

  it.concurrent('half-way through its answer starts over', async () => {
    const error = { ...OVERLOADED, times: 1, after_text: true }
    const { events } = await play({ text: 'one two three four', tokens_per_second: 20, error })
    expect(compactTypes(events)).toEqual(firstTurnTypes('failed_in_text'))
    const execIds = ofType(events, 'output.message.started').map((event) => event.context.exec_id)
    expect(new Set(execIds).size).toBe(2)
    expect(answerOf(events)).toBe('one two three four')
  })

  it.concurrent('half-way through its answer, permanently, leaves no partial answer as a message', async () => {
    const { id, events } = await play({ text: 'one two', error: { ...OVERLOADED, after_text: true } })
    expect(typesOf(events)).not.toContain('output.message.completed')
    expect(typesOf(events).slice(-3)).toEqual(['reason.completed', 'turn.failed', 'session.idled'])
    const { body } = await call(service.url, 'GET', `/v1/sessions/${id}/messages`)
    expect(body.data.map((message: Json) => message.role)).toEqual(['user'])
  })

  it.concurrent('by never answering is given up after the limit', async () => {
    const { events } = await play({ text: 'too late', delay_ms: 3_600_000 })
    expect(ofType(events, 'output.message.started')).toHaveLength(5)
    expect(ofType(events, 'turn.failed')[0].data.error).toContain('said nothing')
  })

  it.concurrent('by falling silent in mid-stream is given up, but a slow one is not', async () => {
    const { events } = await play({ text: 'la '.repeat(25), tokens_per_second: 5 })
    expect(compactTypes(events)).toEqual(firstTurnTypes())
  })
})

describe('the text of a model', () => {
  it.concurrent('is kept with any characters', async () => {
    const text = 'quote " backslash \\ emoji 🙂 line\u2028end'
    const { events } = await play({ thinking: text, text })
    expect(answerOf(events)).toBe(text)
    expect(ofType(events, 'reason.thinking.completed')[0].data.thinking).toBe(text)
  })

  it.concurrent('loses only the characters that Postgres cannot store', async () => {
    const said = { thinking: 'nul \u0000 end', text: 'nul \u0000 half \ud83d end' }
    const error = { status: 400, message: 'nul \u0000 end' }
    const { events } = await play(said, { error })
    expect(answerOf(events)).toBe('nul \ufffd half \ufffd end')
    expect(ofType(events, 'reason.thinking.completed')[0].data.thinking).toBe('nul \ufffd end')
    expect(ofType(events, 'turn.failed')[0].data.error).toBe('llmsim answered 400: nul \ufffd end')
  })
})
