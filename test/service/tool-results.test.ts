import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  unknownId,
  waitUntilIdle,
} from '../support/http.ts'
import { compactTypes, expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
import {
  callsOf,
  cancel,
  clientTool,
  getTurn,
  listTurns,
  MUTE,
  post,
  postAndAsk,
  statusOf,
  submit,
  turnIdOf,
  waitForEvent,
} from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const RESULT = { tool_call_id: 'a', result: 1 }
const OTHER = { tool_call_id: 'b', result: 2 }

/** Creates a session whose client has to submit the results of `a` and `b`. */
async function createWaitingSession(...more: object[]): Promise<{ id: string; turnId: string }> {
  const steps = [{ tool_calls: callsOf('a', 'b') }, ...more, { text: 'done' }]
  const id = await createScriptedSession(api, steps, { tools: [clientTool('a'), clientTool('b')] })
  return { id, turnId: (await postAndAsk(api, id)).id }
}

/** Expects that a refused request changed nothing and the turn still waits for both results. */
async function expectWaiting(id: string, turnId: string): Promise<void> {
  const turn = await getTurn(api, id, turnId)
  expect(turn.status).toBe('waiting')
  expect(turn.pending_tool_calls.map((pending: Json) => pending.id)).toEqual(['a', 'b'])
}

/** Expects that the turn waits as before, and continues with both results. */
async function expectUntouched(id: string, turnId: string): Promise<void> {
  await expectWaiting(id, turnId)
  expect((await submit(api, id, [RESULT, OTHER])).body).toEqual({ accepted: 2, status: 'active' })
  expectSoundRecord(await waitUntilIdle(api, id))
}

describe('tool results that are refused', () => {
  const mistakes: [string, object[], RegExp][] = [
    ['an empty list', [], /^tool_results: must have at least one result$/],
    ['an unknown id', [{ tool_call_id: 'x', result: 1 }], /^tool_results\.0\.tool_call_id: x is not pending/],
    [
      'a result for a pending call and one for an unknown call',
      [RESULT, { tool_call_id: 'x' }],
      /^tool_results\.1\.tool_call_id: x is not/,
    ],
    [
      'more than are pending',
      [RESULT, OTHER, { tool_call_id: 'c', result: 3 }],
      /^tool_results\.2\.tool_call_id: c is/,
    ],
    ['one id twice', [RESULT, RESULT], /must have one result for each call, but a is there twice/],
    [
      'one id twice beside another',
      [RESULT, OTHER, { ...RESULT, result: 3 }],
      /must have one result for each call, but a is there twice/,
    ],
    ['an id in another case', [{ tool_call_id: 'A' }], /A is not pending; pending are: a, b/],
    ['an empty id', [{ tool_call_id: '' }], /is not pending/],
    ['an id with a wildcard', [{ tool_call_id: '%' }], /% is not pending/],
    ['no id', [{ result: 1 }], /^tool_results\.0\.tool_call_id: /],
    ['a number for an id', [{ tool_call_id: 1 }], /^tool_results\.0\.tool_call_id: /],
    ['a list for an error', [{ tool_call_id: 'a', error: [] }], /^tool_results\.0\.error: /],
    ['129 results', Array.from({ length: 129 }, (_, index) => ({ tool_call_id: `${index}` })), /at most 128 results/],
    [
      'a result of 101 KB',
      [{ tool_call_id: 'a', result: 'x'.repeat(101 * 1024) }],
      /^tool_results\.0\.result: .*102400/,
    ],
    [
      'one of 100 KB and a byte',
      [{ tool_call_id: 'a', result: 'x'.repeat(102_399) }],
      /^tool_results\.0\.result: .*102400/,
    ],
    [
      'an error of 101 KB',
      [OTHER, { tool_call_id: 'a', error: 'ü'.repeat(51_201) }],
      /^tool_results\.1\.error: .*102400/,
    ],
    ['a NUL', [{ tool_call_id: 'a', result: { deep: ['\0'] } }], /NUL/],
    ['half a character', [{ tool_call_id: 'a', error: '\ud83e' }], /surrogate/],
  ]

  // Refused requests change nothing, so one turn waits through all of them and then continues.
  let waiting: { id: string; turnId: string }
  beforeAll(async () => {
    waiting = await createWaitingSession()
  })
  afterAll(() => expectUntouched(waiting.id, waiting.turnId))

  it.each(mistakes)('%s', async (_name, results, sentence) => {
    const { id, turnId } = waiting
    const before = await listEvents(api, id)
    expectError(await submit(api, id, results), 400, sentence)
    await expectWaiting(id, turnId)
    expect(await listEvents(api, id)).toEqual(before)
  })

  it('a missing body', async () => {
    const { id, turnId } = waiting
    const path = `/v1/sessions/${id}/tool-results`
    expectError(await call(api, 'POST', path, '{"tool_results": ['), 400, 'not valid JSON')
    expectError(await call(api, 'POST', path), 400, 'body is required')
    for (const body of ['null', '[]', '"x"', '{}', '{"tool_results":{}}', '{"tool_results":[null]}']) {
      expectError(await call(api, 'POST', path, body), 400)
    }
    const text = { 'Content-Type': 'text/plain' }
    expectError(await call(api, 'POST', path, JSON.stringify({ tool_results: [RESULT] }), text), 415)
    await expectWaiting(id, turnId)
  })

  it('a body that is too large', async () => {
    const { id, turnId } = waiting
    const body = JSON.stringify({ tool_results: [{ tool_call_id: 'a', result: 'x'.repeat(16 * 1024 * 1024) }] })
    expectError(await call(api, 'POST', `/v1/sessions/${id}/tool-results`, body), 413, '16777216 bytes')
    await expectWaiting(id, turnId)
  })

  it('an id that was answered before', async () => {
    const { id, turnId } = await createWaitingSession()
    await submit(api, id, [RESULT])
    expectError(await submit(api, id, [RESULT]), 400, 'a is not pending; pending are: b')
    expectError(await submit(api, id, [OTHER, RESULT]), 400, 'a is not pending; pending are: b')
    expect((await getTurn(api, id, turnId)).pending_tool_calls).toHaveLength(1)
    await submit(api, id, [OTHER])
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const results = events.filter((event) => event.type === 'tool.completed')
    expect(results.map((event) => event.data.result[0].text)).toEqual(['1', '2'])
  })

  it('an id of another session, which goes on waiting', async () => {
    const { id, turnId } = await createWaitingSession()
    const steps = [{ tool_calls: callsOf('c') }, { text: 'done' }]
    const other = await createScriptedSession(api, steps, { tools: [clientTool('c')] })
    await postAndAsk(api, other)
    expectError(await submit(api, id, [{ tool_call_id: 'c', result: 1 }]), 400, 'c is not pending')
    expectError(await submit(api, other, [RESULT]), 400, 'a is not pending')
    expect(await statusOf(api, other)).toBe('waitingfortoolresults')
    await expectUntouched(id, turnId)
  })
})

describe('tool results for a session', () => {
  it('that does not exist are not found', async () => {
    expectError(await submit(api, unknownId('session'), [RESULT]), 404, 'Session not found')
    expectError(await submit(api, 'session_1', [RESULT]), 400, /^session_id: /)
  })

  it("that is another organization's are not found, with the same words", async () => {
    const { id, turnId } = await createWaitingSession()
    const other = await newOrganization()
    const missing = unknownId('session')
    expect((await submit(other, id, [RESULT])).body).toEqual((await submit(other, missing, [RESULT])).body)
    expectError(await submit(other, id, [RESULT]), 404, 'Session not found')
    expectError(await cancel(other, id), 404, 'Session not found')
    expectError(await cancel(other, id, { turn_id: turnId }), 404, 'not found')
    expectError(await post(other, id, 'x', { on_busy: 'interrupt' }), 404, 'Session not found')
    expectError(await post(other, id, 'x', { on_busy: 'reject' }), 404, 'Session not found')
    await expectUntouched(id, turnId)
  })

  it('that is fresh, active or idle conflict', async () => {
    const id = await createScriptedSession(api, [MUTE])
    expectError(await submit(api, id, [RESULT]), 409, 'not waiting for tool results')
    await post(api, id)
    await waitForEvent(api, id, 'output.message.started')
    expectError(await submit(api, id, [RESULT]), 409, 'not waiting for tool results')
    await cancel(api, id)
    expectSoundRecord(await waitUntilIdle(api, id))
    expectError(await submit(api, id, [RESULT]), 409, 'not waiting for tool results')
  })

  it('that has received all of them conflict', async () => {
    const { id } = await createWaitingSession(MUTE)
    await submit(api, id, [RESULT, OTHER])
    expectError(await submit(api, id, [RESULT, OTHER]), 409)
    await cancel(api, id)
    expectSoundRecord(await waitUntilIdle(api, id))
  })

  it('whose waiting turn was cancelled conflict', async () => {
    const { id } = await createWaitingSession()
    await submit(api, id, [RESULT])
    await cancel(api, id)
    expectError(await submit(api, id, [OTHER]), 409)
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(events.at(-2).type).toBe('turn.cancelled')
  })

  it.each([2, 8])('sent %i times at once are accepted once', async (times) => {
    const { id } = await createWaitingSession()
    const answers = await Promise.all(
      Array.from({ length: times }, (_, index) =>
        submit(api, id, [
          { ...RESULT, result: index },
          { ...OTHER, result: index },
        ]),
      ),
    )
    const won = answers.findIndex(({ status }) => status === 200)
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([200, ...Array(times - 1).fill(409)])
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const results = events.filter((event) => event.type === 'tool.completed')
    expect(results.map((event) => event.data.result[0].text)).toEqual([`${won}`, `${won}`])
  })
})

describe('a message while the turn waits for tool results', () => {
  it('supersedes it: its calls are cancelled, and the session continues without becoming idle', async () => {
    const { id, turnId } = await createWaitingSession({ text: 'slow', delay_ms: 3000 })
    await submit(api, id, [RESULT])
    const stream = await openStream(api, `/v1/sessions/${id}/sse`)
    const answer = await post(api, id, 'Never mind')
    expect(answer.status).toBe(201)
    expect(await statusOf(api, id)).toBe('active')
    expectError(await submit(api, id, [OTHER]), 409)
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const asked = events.findIndex((event) => event.type === 'tool.call_requested')
    expect(compactTypes(events.slice(asked))).toEqual([
      ...['tool.call_requested', 'tool.completed', 'tool.completed', 'turn.cancelled', 'input.message'],
      ...['session.activated', 'turn.started', 'reason.started', 'output.message.started', 'output.message.delta'],
      ...['llm.generation', 'output.message.completed', 'reason.completed', 'turn.completed', 'session.idled'],
    ])
    expect(events[asked + 2].data).toMatchObject({ tool_call_id: 'b', tool_name: 'b', status: 'cancelled' })
    const { data } = events[asked + 3]
    expect(data).toEqual({ turn_id: turnId, reason: 'superseded by a new message', usage: expect.any(Object) })
    await stream.until((frame) => frame.event === 'session.idled')
    stream.close()
    expect(stream.events()).toEqual(events)
    const [old, next] = await listTurns(api, id)
    expect(old).toMatchObject({ id: turnId, status: 'cancelled', pending_tool_calls: [] })
    expect(next).toMatchObject({ id: turnIdOf(answer), status: 'completed' })
  })

  it('and its last results at the same time are processed one after the other, and nothing is lost', async () => {
    for (let round = 0; round < 10; round++) {
      const { id } = await createWaitingSession()
      const [submitted, posted] = await Promise.all([submit(api, id, [RESULT, OTHER]), post(api, id, 'Never mind')])
      expect(posted.status).toBe(201)
      expect([200, 409]).toContain(submitted.status)
      const events = await waitUntilIdle(api, id)
      expectSoundRecord(events)
      const first = submitted.status === 200 ? 'completed' : 'cancelled'
      expect((await listTurns(api, id)).map((turn) => turn.status)).toEqual([first, 'completed'])
      expect((await listEvents(api, id, '?types=session.idled')).length).toBeLessThanOrEqual(2)
    }
  })

  it('gives the model a cancelled result for each unanswered call', async () => {
    const { id } = await createWaitingSession()
    await post(api, id, 'Never mind')
    const events = await waitUntilIdle(api, id)
    const { messages } = events.findLast((event) => event.type === 'llm.generation').data
    expect(messages.map((message: Json) => message.role)).toEqual([
      'user',
      'agent',
      'tool_result',
      'tool_result',
      'user',
    ])
  })

  it('does nothing to another session', async () => {
    const { id, turnId } = await createWaitingSession()
    await post(api, await createSession(api), 'Hello', {}, '?wait=60')
    await expectUntouched(id, turnId)
  })
})
