import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  modelId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { expectSoundRecord, textOf, typesOf } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
import { callsOf, cancel, createBusySession, listTurns, post, turnIdOf } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const compact = (id: string, body?: object, query = '') => call(api, 'POST', `/v1/sessions/${id}/compact${query}`, body)

const INTRODUCTION = 'Summary of the conversation so far, whose messages are no longer shown:'

/** Returns the input of the latest model call, as texts and roles. */
async function lastInput(id: string): Promise<string[]> {
  const call = (await listEvents(api, id)).findLast(({ type }) => type === 'llm.generation')
  return call?.data.messages.map((message: Json) => (message.role === 'user' ? textOf(message) : message.role))
}

const messagesOf = async (id: string): Promise<Json[]> =>
  (await call(api, 'GET', `/v1/sessions/${id}/messages`)).body.data

describe('POST …/compact', () => {
  it('has the model summarise, names what was dropped, and later turns read the summary instead', async () => {
    const steps = [{ tool_calls: callsOf('echo') }, { text: 'one' }, { text: 'They said one.' }, { text: 'two' }]
    const id = await createScriptedSession(api, [...steps, { text: 'All said.' }, { text: 'three' }], {
      capabilities: [{ ref: 'lab' }],
    })
    await post(api, id, 'First', {}, '?wait=60')
    const before = await messagesOf(id)
    const live = await openStream(api, `/v1/sessions/${id}/sse`)
    const { status, body } = await compact(id, { instructions: 'Keep the number.' })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        turn: { status: 'completed', iterations: 1 },
        summary: { role: 'agent', metadata: { summary: true } },
        dropped: { messages: 4, first_message_id: before[0]?.id, last_message_id: before[3]?.id },
      },
    })
    expect(textOf(body.summary)).toBe('They said one.')
    const [first, ...others] = await lastInput(id)
    expect([first, ...others.slice(0, -1)]).toEqual(['First', 'agent', 'tool_result', 'agent'])
    expect(others.at(-1)).toMatch(/^Summarise this conversation.*Besides:\nKeep the number\.$/s)
    await live.until((frame) => frame.event === 'session.idled')
    const events = await listEvents(api, id)
    const ofTurn = events.slice(-live.events().length)
    expect(live.events()).toEqual(ofTurn)
    expect(typesOf(events).slice(-3)).toEqual(['session.compacted', 'turn.completed', 'session.idled'])
    live.close()

    await post(api, id, 'Second', {}, '?wait=60')
    expect(await lastInput(id)).toEqual([`${INTRODUCTION}They said one.`, 'Second'])
    // The list keeps all messages.
    expect((await messagesOf(id)).slice(0, 4)).toEqual(before)
    expect((await call(api, 'GET', `/v1/sessions/${id}`)).body.output_preview).toBe('two')

    expect((await compact(id)).body.dropped).toMatchObject({ messages: 3, first_message_id: body.summary.id })
    await post(api, id, 'Third', {}, '?wait=60')
    expect(await lastInput(id)).toEqual([`${INTRODUCTION}All said.`, 'Third'])
    // The inputs of all calls are computed as they were.
    const inputs = (await listEvents(api, id, '?types=llm.generation')).map(({ data }) => data.messages.length)
    expect(inputs).toEqual([1, 3, 5, 2, 4, 2])
    expectSoundRecord(await listEvents(api, id))
  })

  it('is refused while a turn runs, and when there is nothing to summarise', async () => {
    const { id: busy, turns } = await createBusySession(api, 0)
    const refused = await compact(busy)
    expectError(refused, 409, String(turns[0]))
    expect(refused.body.code).toBe('session_busy')
    await cancel(api, busy)
    const id = await createScriptedSession(api, [{ text: 'one' }, { text: 'summary' }])
    expectError(await compact(id), 422, /nothing was answered/)
    await post(api, id, 'Hi', {}, '?wait=60')
    expect((await compact(id)).status).toBe(200)
    expectError(await compact(id), 422, /since the last summary/)
    expect(await listTurns(api, id)).toHaveLength(2)
  })

  it('refuses wrong input, and sessions of others', async () => {
    const id = await createSession(api)
    expectError(await compact(id, { instructions: 'x'.repeat(20_000) }), 400, /^instructions: /)
    expectError(await compact(id, { model_id: 'model_0193aaaabbbb7ccc8ddd0123456789ab' }), 400, /^model_id: /)
    expectError(await compact(id, {}, '?wait=601'), 400, /^wait: /)
    const other = await newOrganization()
    expectError(await call(other, 'POST', `/v1/sessions/${id}/compact`), 404)
  })

  const FAILURES: [string, object, string][] = [
    ['the provider fails', { error: { status: 400, message: 'no' } }, 'no'],
    ['there is no text', { tool_calls: callsOf('echo') }, 'The model gave no summary.'],
    ['the summary is too long', { text: 'x'.repeat(100_001) }, 'at most 100000'],
  ]
  it.concurrent.each(FAILURES)('leaves everything as it was when %s', async (_, step, problem) => {
    // A call that is retried plays its step again.
    const id = await createScriptedSession(api, [{ text: 'one' }, step, { text: 'two' }], {
      capabilities: [{ ref: 'lab' }],
    })
    await post(api, id, 'First', {}, '?wait=60')
    const { status, body } = await compact(id, {}, '?wait=120')
    expect({ status, body }).toMatchObject({ status: 200, body: { turn: { status: 'failed' }, summary: null } })
    expect(body.turn.error).toContain(problem)
    await post(api, id, 'Second', {}, '?wait=60')
    expect(await lastInput(id)).toEqual(['First', 'agent', 'Second'])
  })

  it('can be cancelled, and leaves nothing of it to the next turn', async () => {
    const slow = { text: 'one two three four five six seven', tokens_per_second: 2 }
    const id = await createScriptedSession(api, [{ text: 'one' }, slow, { text: 'two' }])
    await post(api, id, 'First', {}, '?wait=60')
    const accepted = await compact(id, {}, '?wait=0')
    expect(accepted).toMatchObject({ status: 202, body: { summary: null, dropped: null } })
    await waitFor(
      async () =>
        (await listEvents(api, id, `?types=output.message.delta&turn_id=${accepted.body.turn.id}`)).length > 0,
      'text',
    )
    // A summary is not steered: the message has a turn of its own.
    const queued = await post(api, id, 'Second', { on_busy: 'steer' })
    expect(queued.body.turn_id).toBeUndefined()
    expect((await cancel(api, id, { turn_id: accepted.body.turn.id })).body.status).toBe('cancelled')
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(
      events.find(({ type, context }) => type === 'turn.completed' && context.turn_id === turnIdOf(queued)),
    ).toBeDefined()
    expect(await lastInput(id)).toEqual(['First', 'agent', 'Second'])
  })

  it('uses the given model', async () => {
    const id = await createScriptedSession(api, [{ text: 'one' }])
    await post(api, id, 'First', {}, '?wait=60')
    const { body } = await compact(id, { model_id: await modelId(api, 'llmsim-lorem-20') })
    expect(body.summary.metadata.model).toBe('llmsim-lorem-20')
  })
})
