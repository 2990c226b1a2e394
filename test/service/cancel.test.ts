import { cancelAtOnce, typesAtEnd, workflowEnd } from '../support/cancelling.ts'
import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  unknownId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { answerOf, compactTypes, eventsOfTurn, expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { withWorkflow } from '../support/temporal.ts'
import {
  callsOf,
  cancel,
  clientTool,
  createBusySession,
  getTurn,
  listTurns,
  MUTE,
  post,
  postAndAsk,
  statusOf,
  turnIdOf,
  waitForEvent,
} from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const NO_OP = { status: 'no_op', message: expect.any(String) }
const WORDS = Array.from({ length: 200 }, (_, index) => `word${index}`).join(' ')
const SLOW_TEXT = { text: WORDS, tokens_per_second: 20 }
const lastDelta = (events: Json[]): string =>
  events.findLast((event) => event.type === 'output.message.delta').data.accumulated

async function expectCancelledTurn(id: string, turnId: string): Promise<void> {
  const turn = await getTurn(api, id, turnId)
  expect(turn).toMatchObject({ status: 'cancelled', pending_tool_calls: [], error: null, error_code: null })
  expect(turn.finished_at).toMatch(/Z$/)
  expect(await withWorkflow({}, turnId, () => workflowEnd({}, turnId))).toMatch(/^(CANCELLED|COMPLETED)$/)
}

describe('cancelling a turn that runs', () => {
  it('before the model produces text: the turn ends at once without text', async () => {
    const { id, turns } = await createBusySession(api, 0)
    const events = await cancelAtOnce(api, id)
    expect(compactTypes(events)).toEqual([
      ...['input.message', 'session.started', 'session.activated', 'turn.started', 'reason.started'],
      ...['output.message.started', 'turn.cancelled', 'session.idled'],
    ])
    const usage = expect.objectContaining({ input_tokens: 0, output_tokens: 0 })
    expect(events.at(-2).data).toEqual({ turn_id: turns[0], reason: 'cancelled by the user', usage })
    expect(events.at(-1).data).toEqual({ turn_id: turns[0], iterations: 1, usage })
    expect(await statusOf(api, id)).toBe('idle')
    await expectCancelledTurn(id, turns[0] ?? '')
    expect(await listEvents(api, id)).toEqual(events)
  })

  it('in the middle of its answer: what clients have seen is kept, for them and for the model', async () => {
    const id = await createScriptedSession(api, [SLOW_TEXT, { text: 'Go on, then.' }])
    const turnId = turnIdOf(await post(api, id, 'Go', { controls: { reasoning: { effort: 'low' } } }))
    await waitForEvent(api, id, 'output.message.delta', 5)
    const events = await cancelAtOnce(api, id)
    expect(typesAtEnd(events, turnId, 4)).toEqual([
      ...['output.message.delta', 'output.message.completed', 'turn.cancelled', 'session.idled'],
    ])
    const kept = lastDelta(events)
    expect(WORDS.startsWith(kept)).toBe(true)
    expect(kept.length).toBeLessThan(WORDS.length)
    const { message } = events.at(-3).data
    expect(message).toMatchObject({
      role: 'agent',
      content: [{ type: 'text', text: kept }],
      metadata: { interrupted: true, model: 'llmsim-script', reasoning_effort: 'low' },
    })
    expect(events.at(-3).data.metadata).toEqual(events.find((event) => event.type === 'reason.started').data.metadata)
    expect((await call(api, 'GET', `/v1/sessions/${id}`)).body.output_preview).toBe(kept.slice(0, 200))
    await expectCancelledTurn(id, turnId)

    const next = await post(api, id, 'And now?', {}, '?wait=60')
    expect(next.body.turn.status).toBe('completed')
    const all = await listEvents(api, id)
    expectSoundRecord(all)
    expect(all.slice(0, events.length)).toEqual(events)
    const { messages } = all.findLast((event) => event.type === 'llm.generation').data
    expect(messages.map((given: Json) => given.content[0].text)).toEqual(['Go', kept, 'And now?'])
    expect(messages[1]).toEqual(message)
    expect((await call(api, 'GET', `/v1/sessions/${id}/messages`)).body.data[1]).toEqual(message)
  })

  it('in a later step: the earlier ones keep their messages, results and usage', async () => {
    const steps = [{ text: 'First.', tool_calls: [{ id: 'x', name: 'echo', arguments: {} }] }, SLOW_TEXT]
    const id = await createScriptedSession(api, steps, { capabilities: [{ ref: 'lab' }] })
    const turnId = turnIdOf(await post(api, id))
    await waitForEvent(api, id, 'output.message.delta', 4)
    const events = await cancelAtOnce(api, id)
    expect(compactTypes(events).slice(-10)).toEqual([
      ...['act.started', 'tool.started', 'tool.completed', 'act.completed', 'reason.started'],
      ...['output.message.started', 'output.message.delta', 'output.message.completed'],
      ...['turn.cancelled', 'session.idled'],
    ])
    expect(answerOf(events)).toBe('First.')
    const { usage } = events.find((event) => event.type === 'reason.completed').data
    expect(usage.output_tokens).toBeGreaterThan(0)
    expect(events.at(-2).data.usage).toMatchObject(usage)
    expect(await getTurn(api, id, turnId)).toMatchObject({ iterations: 2, usage })
  })

  it('while a model call is retried after a failure: it is not retried again', async () => {
    const error = { status: 503, message: 'Busy.', after_text: true, retry_after_ms: 30_000 }
    const id = await createScriptedSession(api, [{ text: 'half of it', tokens_per_second: 20, error }])
    const turnId = turnIdOf(await post(api, id))
    await waitForEvent(api, id, 'output.message.delta')
    const failed = 'SELECT FROM turn_steps WHERE turn_id = $1 AND failures = 1'
    await waitFor(async () => (await api.query(failed, [toUuid(turnId)])).length > 0, 'a retry')
    const events = await cancelAtOnce(api, id)
    expect(events.at(-3).data.message.content[0].text).toBe(lastDelta(events))
    await expectCancelledTurn(id, turnId)
  })

  it('in a tool: the tool’s signal aborts, and its call ends as cancelled', async () => {
    const calls = [
      { id: 'cancel-done', name: 'echo', arguments: {} },
      { id: 'cancel-1', name: 'wait', arguments: { ms: 60_000 } },
      { id: 'cancel-2', name: 'wait', arguments: { ms: 60_000 } },
    ]
    const id = await createScriptedSession(api, [{ text: 'Let me see.', tool_calls: calls }], {
      capabilities: [{ ref: 'lab' }],
    })
    const turnId = turnIdOf(await post(api, id))
    await waitForEvent(api, id, 'tool.started', 3)
    await waitForEvent(api, id, 'tool.completed')
    const running = async () => (await api.labRuns()).filter((run) => /^cancel-\d$/.test(run.callId))
    await waitFor(async () => (await running()).length === 2, 'the tools to run')
    const events = await cancelAtOnce(api, id)
    await waitFor(async () => (await running()).every((run) => run.aborted), 'the tools to be told')
    expect(typesAtEnd(events, turnId, 4)).toEqual([
      ...['tool.completed', 'tool.completed', 'turn.cancelled', 'session.idled'],
    ])
    const results = events.filter((event) => event.type === 'tool.completed').map((event) => event.data)
    expect(results.map(({ tool_call_id, status }) => [tool_call_id, status])).toEqual([
      ...[['cancel-done', 'success'], ...['cancel-1', 'cancel-2'].map((callId) => [callId, 'cancelled'])],
    ])
    expect(results[1]).toMatchObject({ tool_name: 'wait', success: false, result: null })
    await expectCancelledTurn(id, turnId)
    expect(await running()).toHaveLength(2)
    expect(await listEvents(api, id)).toEqual(events)
  })

  it('while it waits for its client: each call without a result ends as cancelled', async () => {
    const tools = [clientTool('a'), clientTool('b')]
    const id = await createScriptedSession(api, [{ tool_calls: callsOf('a', 'b') }], { tools })
    const { id: turnId } = await postAndAsk(api, id)
    const events = await cancelAtOnce(api, id)
    expect(typesAtEnd(events, turnId, 5)).toEqual([
      ...['tool.call_requested', 'tool.completed', 'tool.completed', 'turn.cancelled', 'session.idled'],
    ])
    expect(await statusOf(api, id)).toBe('idle')
    await expectCancelledTurn(id, turnId)
    expect(await listEvents(api, id)).toEqual(events)
  })

  it('in Temporal itself has the same end', async () => {
    const { id, turns } = await createBusySession(api, 1, [SLOW_TEXT, { text: 'next' }])
    await waitForEvent(api, id, 'output.message.delta', 2)
    await withWorkflow({}, turns[0] ?? '', (workflow) => workflow.cancel())
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const end = events.find((event) => event.type === 'turn.cancelled')
    expect(end.data).toMatchObject({ turn_id: turns[0], reason: 'cancelled in Temporal' })
    expect(answerOf(events, turns[0])).toBe(
      eventsOfTurn(events, turns[0] ?? '').findLast((event) => event.type === 'output.message.delta').data.accumulated,
    )
    expect(answerOf(events, turns[1])).toBe('next')
  })
})

describe('cancelling where nothing is to be cancelled', () => {
  it('a fresh or an idle session is left as it is', async () => {
    const id = await createSession(api)
    for (const body of [undefined, {}, { turn_id: null }]) expect((await cancel(api, id, body)).body).toEqual(NO_OP)
    expect([await listEvents(api, id), await statusOf(api, id)]).toEqual([[], 'started'])
    const { turn } = (await post(api, id, 'x', {}, '?wait=60')).body
    const events = await listEvents(api, id)
    for (const body of [undefined, { turn_id: turn.id }]) expect((await cancel(api, id, body)).body).toEqual(NO_OP)
    expect(await listEvents(api, id)).toEqual(events)
    expect(await getTurn(api, id, turn.id)).toEqual(turn)
  })

  it('a cancelled session is cancelled once', async () => {
    const { id } = await createBusySession(api, 1)
    const events = await cancelAtOnce(api, id)
    expect((await cancel(api, id)).body).toEqual(NO_OP)
    expect(await listEvents(api, id)).toEqual(events)
  })

  it('an earlier turn that has ended does not cancel the running one', async () => {
    const { id, turns } = await createBusySession(api, 1, [{ text: 'first', delay_ms: 300 }, MUTE])
    await waitForEvent(api, id, 'output.message.started', 2)
    expect((await cancel(api, id, { turn_id: turns[0] })).body).toEqual(NO_OP)
    expect((await listTurns(api, id)).map((turn) => turn.status)).toEqual(['completed', 'active'])
    await cancelAtOnce(api, id)
  })

  it('a session or a turn that is not there is not found', async () => {
    expectError(await cancel(api, unknownId('session')), 404, 'Session not found')
    const { id, turns } = await createBusySession(api, 0)
    const other = await createSession(api)
    expectError(await cancel(api, id, { turn_id: unknownId('turn') }), 404, 'Turn not found')
    expectError(await cancel(api, other, { turn_id: turns[0] }), 404, 'Turn not found')
    expect((await getTurn(api, id, turns[0] ?? '')).status).toBe('active')
    await cancelAtOnce(api, id)
  })

  it.each(['turn_1', 'x', '', 7, {}, unknownId('message'), unknownId('turn').toUpperCase()])(
    '%j is not a turn id',
    async (turn_id) => {
      expectError(await cancel(api, await createSession(api), { turn_id }), 400, /^turn_id: /)
    },
  )

  it.each(['[]', '"x"', '7', '{'])('%s is not a valid request', async (body) => {
    expectError(await call(api, 'POST', `/v1/sessions/${await createSession(api)}/cancel`, body), 400)
  })
})
