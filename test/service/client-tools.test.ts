import { call, createScriptedSession, type Json, modelId, waitFor, waitUntilIdle } from '../support/http.ts'
import { answerOf, compactTypes, expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
import { callsOf, clientTool, getTurn, postAndAsk, statusOf, submit } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const ANSWER = { text: 'done' }

/** Creates a session whose model makes these calls and then answers. `names` are the client's tools. */
const createClientSession = (calls: object[], names: string[], agent: object = {}, session: object = {}) =>
  createScriptedSession(
    api,
    [{ text: 'Let me see.', tool_calls: calls }, ANSWER],
    { capabilities: [{ ref: 'lab' }], tools: names.map((name) => clientTool(name)), ...agent },
    session,
  )

async function finish(id: string): Promise<Json[]> {
  const events = await waitUntilIdle(api, id)
  expectSoundRecord(events)
  expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 2 } })
  return events
}

const completed = (events: Json[]): Json[] =>
  events.filter((event) => event.type === 'tool.completed').map((event) => event.data)

/** Returns the result of each call that the model received, keyed by call id. */
function resultsForModel(events: Json[]): Record<string, Json> {
  const [, second] = events.filter((event) => event.type === 'llm.generation')
  const parts = second.data.messages.flatMap((message: Json) => message.content)
  const results = parts.filter((part: Json) => part.type === 'tool_result')
  return Object.fromEntries(results.map(({ tool_call_id, result, error }: Json) => [tool_call_id, { result, error }]))
}

const REASON = ['reason.started', 'output.message.started', 'output.message.delta', 'llm.generation']
const REASONED = ['output.message.completed', 'reason.completed']

describe('a session that is changed while its turn waits', () => {
  it('has other tools and another model from the next call of a model on', async () => {
    const id = await createClientSession([{ id: 'ask-1', name: 'ask', arguments: {} }], ['ask'])
    await postAndAsk(api, id)
    const model_id = await modelId(api, 'llmsim-echo')
    const change = { model_id, capabilities: [{ ref: 'current_time' }], tools: [clientTool('tell')] }
    expect((await call(api, 'PATCH', `/v1/sessions/${id}`, change)).status).toBe(200)
    await submit(api, id, [{ tool_call_id: 'ask-1', result: 1 }])
    const [before, after] = (await finish(id)).filter(({ type }) => type === 'llm.generation').map(({ data }) => data)
    const namesOf = ({ tools }: Json) => tools.map(({ name }: Json) => name)
    expect([before.metadata.model, after.metadata.model]).toEqual(['llmsim-script', 'llmsim-echo'])
    expect(namesOf(before)).not.toEqual(expect.arrayContaining(['get_current_time']))
    expect(namesOf(after)).toEqual(expect.arrayContaining(['get_current_time', 'ask', 'tell']))
  })
})

describe('a call of a tool that the client runs', () => {
  it('is requested, waited for and answered, and the same turn continues', async () => {
    const calls = [{ id: 'ask-1', name: 'ask', arguments: { question: 'Why? ü 🦊' } }]
    const id = await createClientSession(calls, ['ask'])
    const stream = await openStream(api, `/v1/sessions/${id}/sse`)
    const turn = await postAndAsk(api, id)
    const requested = calls.map((one) => ({ ...one, kind: 'client_tool' }))
    expect(turn).toMatchObject({ finished_at: null, iterations: 1, pending_tool_calls: requested })
    expect(await statusOf(api, id)).toBe('waitingfortoolresults')
    const asked = await stream.until((frame) => frame.event === 'tool.call_requested')
    expect(asked.data.data).toEqual({ tool_calls: requested })

    const answer = await submit(api, id, [{ tool_call_id: 'ask-1', result: { because: ['ü', '🦊'] } }])
    expect([answer.status, answer.body]).toEqual([200, { accepted: 1, status: 'active' }])
    const events = await finish(id)
    expect(compactTypes(events)).toEqual([
      ...['input.message', 'session.started', 'session.activated', 'turn.started', ...REASON, ...REASONED],
      ...['act.started', 'tool.call_requested', 'tool.completed', 'act.completed'],
      ...[...REASON, ...REASONED, 'turn.completed', 'session.idled'],
    ])
    expect(completed(events)).toEqual([
      expect.objectContaining({ tool_call_id: 'ask-1', tool_name: 'ask', status: 'success', success: true }),
    ])
    expect(resultsForModel(events)).toEqual({ 'ask-1': { result: { because: ['ü', '🦊'] }, error: null } })
    await stream.until((frame) => frame.event === 'session.idled')
    stream.close()
    expect(stream.events()).toEqual(events)
    expect(await getTurn(api, id, turn.id)).toMatchObject({ status: 'completed', pending_tool_calls: [] })
    expect(await statusOf(api, id)).toBe('idle')
  })

  it('has its result among the messages', async () => {
    const id = await createClientSession(callsOf('ask'), ['ask'])
    await postAndAsk(api, id)
    await submit(api, id, [{ tool_call_id: 'ask', result: 7 }])
    await finish(id)
    const { body } = await call(api, 'GET', `/v1/sessions/${id}/messages`)
    expect(body.data.map((message: Json) => message.role)).toEqual(['user', 'agent', 'tool_result', 'agent'])
    expect(body.data[2].content).toEqual([{ type: 'tool_result', tool_call_id: 'ask', result: 7, error: null }])
  })

  it('comes after the tools of the service have run', async () => {
    const calls = [
      { id: 'mine', name: 'ask', arguments: {} },
      { id: 'slow', name: 'wait', arguments: { ms: 300 } },
      { id: 'quick', name: 'echo', arguments: { text: 'x' } },
    ]
    const id = await createClientSession(calls, ['ask'])
    const turn = await postAndAsk(api, id)
    expect(turn.pending_tool_calls.map((pending: Json) => pending.id)).toEqual(['mine'])
    await submit(api, id, [{ tool_call_id: 'mine', result: 'x' }])
    const events = await finish(id)
    const acting = events.filter((event) => /^(act|tool)\./.test(event.type))
    const types = acting.map((event) => event.type)
    // The two tools run in parallel, so either may complete before the other starts.
    const run = ['tool.started', 'tool.completed']
    expect(types.slice(1, 5).sort()).toEqual([...run, ...run].sort())
    expect([types[0], ...types.slice(5)]).toEqual([
      'act.started',
      ...['tool.call_requested', 'tool.completed', 'act.completed'],
    ])
    expect(acting[0].data.tool_calls).toEqual([
      { id: 'mine', name: 'ask', display_name: 'ask', policy: 'client_side' },
      { id: 'slow', name: 'wait', display_name: 'The wait tool', policy: 'auto' },
      { id: 'quick', name: 'echo', display_name: 'The echo tool', policy: 'auto' },
    ])
    expect(acting[5].data.tool_calls).toEqual([{ id: 'mine', name: 'ask', arguments: {}, kind: 'client_tool' }])
    expect(acting.at(-1).data).toMatchObject({ success_count: 3, error_count: 0 })
    expect(Object.keys(resultsForModel(events)).sort()).toEqual(['mine', 'quick', 'slow'])
    expect(answerOf(events)).toBe('Let me see.')
  })

  it('belongs to the span of its act', async () => {
    const id = await createClientSession(callsOf('ask'), ['ask'])
    const { id: turn_id } = await postAndAsk(api, id)
    await submit(api, id, [{ tool_call_id: 'ask', result: 1 }])
    const events = await finish(id)
    const contextOf = (type: string): Json => events.find((event) => event.type === type).context
    expect(contextOf('tool.call_requested').span_id).toBe(contextOf('act.started').span_id)
    expect(contextOf('tool.completed')).toMatchObject({ turn_id, parent_span_id: contextOf('act.started').span_id })
  })

  it('never shares its id with an earlier call of the conversation, though the model numbers them so', async () => {
    const steps = [
      { tool_calls: callsOf('ask') },
      { tool_calls: callsOf('ask') },
      ANSWER,
      { tool_calls: callsOf('ask') },
    ]
    const id = await createScriptedSession(api, steps, { tools: [clientTool('ask')] })
    const result = { tool_call_id: 'ask', result: 1 }
    const pendingIds = async (turn: Json) =>
      (await getTurn(api, id, turn.id)).pending_tool_calls.map((one: Json) => one.id)
    const first = await postAndAsk(api, id)
    expect(await pendingIds(first)).toEqual(['ask'])
    await submit(api, id, [result])
    await waitFor(async () => (await pendingIds(first)).length === 1, 'the second call')
    const [second] = await pendingIds(first)
    expect(second).toMatch(/^call_[0-9a-f]{32}$/)
    // The first result, whose answer was lost.
    expect((await submit(api, id, [result])).status).toBe(400)
    await submit(api, id, [{ tool_call_id: second, result: 2 }])
    const events = await waitUntilIdle(api, id)
    expect(completed(events).map((one) => [one.tool_call_id, one.result[0].text])).toEqual([
      ['ask', '1'],
      [second, '2'],
    ])
    const [third] = await pendingIds(await postAndAsk(api, id))
    expect(third).toMatch(/^call_[0-9a-f]{32}$/)
    expect((await submit(api, id, [result])).status).toBe(400)
    await submit(api, id, [{ tool_call_id: third, result: 3 }])
  })

  it('is the first of several in one turn', async () => {
    const steps = [
      { tool_calls: callsOf('ask') },
      { tool_calls: [{ id: 'again', name: 'ask', arguments: {} }] },
      ANSWER,
    ]
    const id = await createScriptedSession(api, steps, { tools: [clientTool('ask')] })
    const { id: turnId } = await postAndAsk(api, id)
    await submit(api, id, [{ tool_call_id: 'ask', result: 1 }])
    const stream = await openStream(api, `/v1/sessions/${id}/sse`)
    await stream.until((frame) => frame.event === 'tool.call_requested' && frame.data.data.tool_calls[0].id === 'again')
    stream.close()
    expect(await getTurn(api, id, turnId)).toMatchObject({
      status: 'waiting',
      iterations: 2,
      pending_tool_calls: [{ id: 'again' }],
    })
    const earlier = await submit(api, id, [{ tool_call_id: 'ask', result: 1 }])
    expect([earlier.status, earlier.body.error]).toEqual([400, expect.stringContaining('pending are: again')])
    await submit(api, id, [{ tool_call_id: 'again', result: 2 }])
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(completed(events).map((data) => data.tool_call_id)).toEqual(['ask', 'again'])
    expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 3 } })
  })
})

describe('results of several calls', () => {
  const NAMES = ['a', 'b', 'c']

  it('may come one by one; the turn goes on with the last', async () => {
    const id = await createClientSession(callsOf(...NAMES), NAMES)
    const { id: turnId } = await postAndAsk(api, id)
    const waiting = { accepted: 1, status: 'waitingfortoolresults' }
    expect((await submit(api, id, [{ tool_call_id: 'c', result: 3 }])).body).toEqual(waiting)
    expect((await getTurn(api, id, turnId)).pending_tool_calls.map((pending: Json) => pending.id)).toEqual(['a', 'b'])
    expect((await submit(api, id, [{ tool_call_id: 'a', result: 1 }])).body).toEqual(waiting)
    expect(await statusOf(api, id)).toBe('waitingfortoolresults')
    const last = await submit(api, id, [{ tool_call_id: 'b', result: 2 }])
    expect(last.body).toEqual({ accepted: 1, status: 'active' })
    const events = await finish(id)
    expect(completed(events).map((data) => data.tool_call_id)).toEqual(['c', 'a', 'b'])
    expect(resultsForModel(events)).toMatchObject({ a: { result: 1 }, b: { result: 2 }, c: { result: 3 } })
  })

  it('may come all at once, each in a request of its own', async () => {
    const id = await createClientSession(callsOf(...NAMES), NAMES)
    await postAndAsk(api, id)
    const answers = await Promise.all(NAMES.map((name) => submit(api, id, [{ tool_call_id: name, result: name }])))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(answers.map(({ body }) => body.status).sort()).toEqual([
      'active',
      'waitingfortoolresults',
      'waitingfortoolresults',
    ])
    expect(completed(await finish(id))).toHaveLength(3)
  })

  it('may be as many as an answer has calls', async () => {
    const names = Array.from({ length: 128 }, (_, index) => `call-${index}`)
    const id = await createClientSession(
      names.map((name) => ({ id: name, name: 'ask', arguments: {} })),
      ['ask'],
    )
    await postAndAsk(api, id)
    const results = names.map((tool_call_id) => ({ tool_call_id, result: 'x'.repeat(10_000) }))
    expect((await submit(api, id, results)).body).toEqual({ accepted: 128, status: 'active' })
    expect(completed(await finish(id))).toHaveLength(128)
  })
})

describe('a result', () => {
  const values: [string, object, Json][] = [
    ['null', { result: null }, null],
    ['false', { result: false }, false],
    ['0', { result: 0 }, 0],
    ['an empty text', { result: '' }, ''],
    ['a text that looks like JSON', { result: '{"a":1}' }, '{"a":1}'],
    ['nested', { result: [{ a: [{ b: [null, 1.5, '\\ " \n'] }] }] }, [{ a: [{ b: [null, 1.5, '\\ " \n'] }] }]],
    ['of every script', { result: { 日本語: 'עברית 🦊 \u2028 é' } }, { 日本語: 'עברית 🦊 \u2028 é' }],
    ['of 100 KB', { result: 'x'.repeat(100 * 1024 - 2) }, 'x'.repeat(100 * 1024 - 2)],
  ]
  it.each(values)('that is %s reaches the model as it is', async (_name, result, expected) => {
    const id = await createClientSession(callsOf('ask'), ['ask'])
    await postAndAsk(api, id)
    expect((await submit(api, id, [{ tool_call_id: 'ask', ...result }])).status).toBe(200)
    const events = await finish(id)
    expect(completed(events)).toEqual([expect.objectContaining({ status: 'success', error: null })])
    expect(resultsForModel(events)).toEqual({ ask: { result: expected, error: null } })
  })

  it.each([
    ['an error', { error: 'The user has gone home. ü' }],
    ['an error beside a result', { error: 'The user has gone home. ü', result: 'ignored' }],
  ])('that is %s reaches the model as an error', async (_name, result) => {
    const id = await createClientSession(callsOf('ask'), ['ask'])
    await postAndAsk(api, id)
    expect((await submit(api, id, [{ tool_call_id: 'ask', ...result }])).body.status).toBe('active')
    const events = await finish(id)
    expect(completed(events)).toEqual([
      expect.objectContaining({ tool_name: 'ask', status: 'error', success: false, result: null, error: result.error }),
    ])
    expect(resultsForModel(events)).toEqual({ ask: { result: null, error: result.error } })
    expect(events.find((event) => event.type === 'act.completed').data).toMatchObject({ error_count: 1 })
  })
})

describe('an empty error', () => {
  it.each([
    ['is an error', { error: '' }, { status: 'error', result: null, error: expect.stringMatching(/gave no reason/) }],
    ['is ignored beside a result', { error: '', result: 5 }, { status: 'success', error: null }],
  ])('%s', async (_name, result, expected) => {
    const id = await createClientSession(callsOf('ask'), ['ask'])
    await postAndAsk(api, id)
    expect((await submit(api, id, [{ tool_call_id: 'ask', ...result }])).status).toBe(200)
    expect(completed(await finish(id))).toEqual([expect.objectContaining(expected)])
  })
})

describe('the tools of the client', () => {
  it('come from the agent and the session, which wins for the same name', async () => {
    const strict = clientTool('ask', { number: { type: 'integer' } }, { display_name: "The session's" })
    const calls = [{ id: 'one', name: 'ask', arguments: { number: 1 } }, ...callsOf('other')]
    const id = await createClientSession(
      calls,
      [],
      { tools: [clientTool('ask', { number: { type: 'string' } }), clientTool('other')] },
      { tools: [strict] },
    )
    const { pending_tool_calls } = await postAndAsk(api, id)
    expect(pending_tool_calls.map((pending: Json) => pending.id)).toEqual(['one', 'other'])
    await submit(api, id, [
      { tool_call_id: 'one', result: 1 },
      { tool_call_id: 'other', result: 2 },
    ])
    const events = await finish(id)
    const [generation] = events.filter((event) => event.type === 'llm.generation')
    const offered = generation.data.tools.filter(({ name }: Json) => name === 'ask')
    expect(offered).toEqual([{ name: 'ask', description: 'Does ask.', display_name: "The session's" }])
  })

  it('may be one of the same name as a tool of a capability, which then does not run', async () => {
    const tools = [clientTool('echo', {}, { replaces: true })]
    const id = await createClientSession([{ id: 'taken-over', name: 'echo', arguments: {} }], [], { tools })
    await postAndAsk(api, id)
    await submit(api, id, [{ tool_call_id: 'taken-over', result: 'by the client' }])
    expect(resultsForModel(await finish(id))).toMatchObject({ 'taken-over': { result: 'by the client' } })
    expect((await api.labRuns()).filter((run) => run.callId === 'taken-over')).toEqual([])
  })

  it('a call that its schema forbids never reaches the client', async () => {
    const tools = [clientTool('ask', { number: { type: 'integer' } })]
    const wrong = { id: 'wrong', name: 'ask', arguments: { number: 'x' } }
    const right = { id: 'right', name: 'ask', arguments: { number: 1 } }
    const id = await createClientSession([wrong, right], [], { tools })
    const { pending_tool_calls } = await postAndAsk(api, id)
    expect(pending_tool_calls).toEqual([{ ...right, kind: 'client_tool' }])
    const refused = await submit(api, id, [{ tool_call_id: 'wrong', result: 1 }])
    expect(refused.status).toBe(400)
    await submit(api, id, [{ tool_call_id: 'right', result: 1 }])
    const events = await finish(id)
    expect(completed(events)[0]).toMatchObject({ tool_call_id: 'wrong', status: 'error' })
    expect(completed(events)[0].error).toContain('number')
  })

  it('when all calls are wrong, the client is not asked at all', async () => {
    const tools = [clientTool('ask', { number: { type: 'integer' } })]
    const wrong = ['one', 'two'].map((id) => ({ id, name: 'ask', arguments: { number: 'x' } }))
    const id = await createClientSession(wrong, [], { tools })
    await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, {
      message: { content: [{ type: 'text', text: 'Go' }] },
    })
    const events = await finish(id)
    expect(events.map((event) => event.type)).not.toContain('tool.call_requested')
  })
})
