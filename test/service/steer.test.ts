import {
  call,
  createScriptedSession,
  expectError,
  type Json,
  listEvents,
  textMessage,
  waitUntilIdle,
} from '../support/http.ts'
import { answerOf, expectSoundRecord, textOf, turnsOf, typesOf } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
import {
  callsOf,
  cancel,
  clientTool,
  createBusySession,
  getTurn,
  listTurns,
  post,
  postAndAsk,
  submit,
  turnIdOf,
  waitForEvent,
} from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const STEER = { on_busy: 'steer' }
const SLOW = { text: 'one two three four', tokens_per_second: 2 }
const lab = { capabilities: [{ ref: 'lab' }] }

/** Returns the input of each model call of a session, as roles and texts. */
const readOf = (events: Json[]): string[][] =>
  events
    .filter(({ type }) => type === 'llm.generation')
    .map(({ data }) =>
      data.messages.map((message: Json) => (message.role === 'user' ? textOf(message) : String(message.role))),
    )

/** Posts a message, and another one into its turn once the record has `nth` events of a type. Returns what came of it. */
async function steerAfter(type: string, id: string, nth = 1) {
  const turnId = turnIdOf(await post(api, id))
  const all = await openStream(api, `/v1/sessions/${id}/sse`)
  await waitForEvent(api, id, type, nth)
  const { status, body: message } = await post(api, id, 'Steer', STEER)
  expect({ status, message }).toMatchObject({ status: 201, message: { turn_id: turnId, role: 'user' } })
  const settle = async () => {
    const events = await waitUntilIdle(api, id)
    await all.until((frame) => frame.event === 'session.idled')
    all.close()
    // A live event has the input that the model got; the record computes it.
    expect(all.events()).toEqual(events)
    expectSoundRecord(events)
    expect(turnsOf(events)).toEqual([turnId])
    expect(await listTurns(api, id)).toHaveLength(1)
    return events
  }
  return { turnId, message, settle }
}

describe('on_busy steer', () => {
  it('joins the turn during a model call that calls tools, and is read after their results', async () => {
    const steps = [{ ...SLOW, tool_calls: callsOf('echo') }, { text: 'done' }]
    const { turnId, message, settle } = await steerAfter(
      'output.message.delta',
      await createScriptedSession(api, steps, lab),
    )
    const events = await settle()
    expect(readOf(events)).toEqual([['Go'], ['Go', 'agent', 'tool_result', 'Steer']])
    const joined = events.find(({ type, context }) => type === 'input.message' && context.turn_id)
    expect(joined).toMatchObject({ data: { message }, context: { turn_id: turnId, trace_id: turnId } })
    const { data } = (await call(api, 'GET', `/v1/sessions/${message.session_id}/messages`)).body
    expect(data).toContainEqual(message)
  })

  it('joins it while a tool runs', async () => {
    const steps = [{ tool_calls: [{ id: 'w', name: 'wait', arguments: { ms: 1500 } }] }, { text: 'done' }]
    const events = await (await steerAfter('tool.started', await createScriptedSession(api, steps, lab))).settle()
    expect(readOf(events)).toEqual([['Go'], ['Go', 'agent', 'tool_result', 'Steer']])
  })

  it('keeps the turn from ending with an answer that has not read it, and later turns read the same', async () => {
    const id = await createScriptedSession(api, [SLOW, { text: 'second' }, { text: 'third' }])
    const { turnId, settle } = await steerAfter('output.message.delta', id)
    const events = await settle()
    expect(readOf(events)).toEqual([['Go'], ['Go', 'agent', 'Steer']])
    expect(await getTurn(api, id, turnId)).toMatchObject({ status: 'completed', iterations: 2 })
    expect((await post(api, id, 'Next', STEER, '?wait=60')).body.output.content[0].text).toBe('third')
    expect(readOf(await listEvents(api, id)).at(-1)).toEqual(['Go', 'agent', 'Steer', 'agent', 'Next'])
  })

  it('takes several, each read once', async () => {
    const id = await createScriptedSession(api, [SLOW, SLOW, { text: 'end' }])
    const { settle } = await steerAfter('output.message.delta', id)
    await post(api, id, 'Twice', STEER)
    await waitForEvent(api, id, 'output.message.started', 2)
    await post(api, id, 'Thrice', STEER)
    const second = ['Go', 'agent', 'Steer', 'Twice']
    expect(readOf(await settle())).toEqual([['Go'], second, [...second, 'agent', 'Thrice']])
  })

  it('joins a turn that waits for its client, which goes on waiting', async () => {
    const steps = [{ tool_calls: callsOf('a') }, { text: 'done' }]
    const id = await createScriptedSession(api, steps, { tools: [clientTool('a')] })
    const { id: turnId } = await postAndAsk(api, id)
    expect((await post(api, id, 'Steer', STEER)).body.turn_id).toBe(turnId)
    expect((await getTurn(api, id, turnId)).status).toBe('waiting')
    await submit(api, id, [{ tool_call_id: 'a', result: 1 }])
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(readOf(events).at(-1)).toEqual(['Go', 'agent', 'tool_result', 'Steer'])
  })

  it('overtakes queued messages, which keep their turns', async () => {
    const { id, turns } = await createBusySession(api, 1, [SLOW, { text: 'steered' }, { text: 'queued' }])
    expect((await post(api, id, 'Steer', STEER)).body.turn_id).toBe(turns[0])
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(turnsOf(events)).toEqual(turns)
    expect(answerOf(events, turns[1])).toBe('queued')
    expect(readOf(events).at(-1)).toEqual(['Go', 'agent', 'Steer', 'agent', 'Go'])
  })

  it('is an ordinary message when nothing runs, with a turn of its own', async () => {
    const id = await createScriptedSession(api, [{ text: 'yes' }])
    const { status, body } = await post(api, id, 'Hi', STEER, '?wait=60')
    expect({ status, body }).toMatchObject({ status: 200, body: { turn: { status: 'completed' } } })
    expect(body.message.turn_id).toBeUndefined()
  })

  it('is accepted once for an Idempotency-Key, also after the turn', async () => {
    const id = await createScriptedSession(api, [SLOW, { text: 'second' }])
    await post(api, id)
    await waitForEvent(api, id, 'output.message.delta')
    const key = { 'Idempotency-Key': 'steer' }
    const send = () => call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Steer', STEER), key)
    const [first, ...others] = await Promise.all([send(), send(), send()])
    await waitUntilIdle(api, id)
    for (const other of [...others, await send()]) expect(other.body).toEqual(first?.body)
    const events = await waitUntilIdle(api, id)
    expect(typesOf(events).filter((type) => type === 'input.message')).toHaveLength(2)
  })

  it('is followed to the end of the turn, by ?wait and by a stream', async () => {
    const { id, turns } = await createBusySession(api, 0, [SLOW, { text: 'second' }])
    const body = textMessage('Stream', STEER)
    const stream = await openStream(api, `/v1/sessions/${id}/messages`, { method: 'POST', body })
    const waited = await post(api, id, 'Wait', STEER, '?wait=60')
    expect(waited.body).toMatchObject({ turn: { id: turns[0], status: 'completed' }, output: { turn_id: turns[0] } })
    expect(textOf(waited.body.output)).toBe('second')
    await stream.until((frame) => frame.event === 'turn.completed')
    stream.close()
    expect(stream.events()[0]).toMatchObject({ type: 'input.message', context: { turn_id: turns[0] } })
  })

  it('fails the turn that has no model call left for it', async () => {
    const limits = { max_model_calls: 1 }
    const id = await createScriptedSession(api, [SLOW, { text: 'never' }], { limits })
    const { turnId, settle } = await steerAfter('output.message.delta', id)
    const events = await settle()
    expect(readOf(events)).toEqual([['Go']])
    expect(answerOf(events)).toBe(SLOW.text)
    expect(await getTurn(api, id, turnId)).toMatchObject({ status: 'failed', error_code: 'max_iterations' })
  })

  it('refuses the 101st message for a turn, and any of another organization', async () => {
    const { id } = await createBusySession(api, 0)
    expectError(await post(await newOrganization(), id, 'x', STEER), 404)
    for (let batch = 0; batch < 10; batch++) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => post(api, id, 'x', STEER)))
      expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(201))
    }
    const refused = await post(api, id, 'x', STEER)
    expectError(refused, 429, /100 messages have joined/)
    expect(refused.body.code).toBe('queue_full')
    await cancel(api, id)
  })
})
