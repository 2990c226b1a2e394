import { QUESTION_TOOL } from '../../contract/turns.ts'
import {
  call,
  createScriptedSession,
  expectError,
  type Json,
  listEvents,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { callsOf, cancel, clientTool, getTurn, post, postAndAsk, submit } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const asking = (times: number) => ({ id: 'a', name: 'elicit', arguments: { times } })
const accept = (tool_call_id: string, name: string) => ({
  tool_call_id,
  result: { action: 'accept', content: { name } },
})

/** Starts a turn whose tool asks in `times` rounds. Returns the session and the turn, which waits. */
async function startAsking(times = 1, more: { calls?: Json[]; tools?: Json[] } = {}) {
  const steps = [{ tool_calls: [asking(times), ...(more.calls ?? [])] }, { text: 'done' }]
  const id = await createScriptedSession(api, steps, { capabilities: [{ ref: 'lab' }], tools: more.tools ?? [] })
  return { id, turn: await postAndAsk(api, id) }
}

/** Waits until other questions than these are pending. */
const nextPending = (id: string, turn: Json, before: Json[]): Promise<Json[]> =>
  waitFor(async () => {
    const { pending_tool_calls: pending } = await getTurn(api, id, turn.id)
    const isNew = pending.length > 0 && pending.every(({ id }: Json) => !before.some((old) => old.id === id))
    return isNew && pending
  }, `new questions of ${turn.id}`)

const resultsOf = (events: Json[], name = 'elicit') =>
  events.filter(({ type, data }) => type === 'tool.completed' && data.tool_name === name).map(({ data }) => data)
const answersOf = ({ result }: Json): Json => JSON.parse(result[0].text)

describe('a tool that asks its user', () => {
  it('shows its question as a call of the client, and goes on with the answer', async () => {
    const { id, turn } = await startAsking()
    const [question] = turn.pending_tool_calls
    expect(turn.pending_tool_calls).toEqual([
      {
        id: expect.stringMatching(/^question_[0-9a-f]{32}$/),
        name: QUESTION_TOOL,
        arguments: {
          tool: 'elicit',
          tool_call_id: 'a',
          message: 'Who are you?',
          requested_schema: { type: 'object', properties: { name: { type: 'string' } } },
        },
        kind: 'client_tool',
      },
    ])
    expect((await call(api, 'GET', `/v1/sessions/${id}`)).body.status).toBe('waitingfortoolresults')
    expect((await submit(api, id, [accept(question.id, 'Ada')])).body).toEqual({ accepted: 1, status: 'active' })
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const answers = { q0: { action: 'accept', content: { name: 'Ada' } } }
    expect(resultsOf(events).map(answersOf)).toEqual([[{ answers, state: 'state 1' }]])
    const { data, context } = events.find(({ type }) => type === 'tool.call_requested') as Json
    expect(data).toEqual({ tool_calls: turn.pending_tool_calls })
    const started = events.find(({ type }) => type === 'tool.started') as Json
    expect(context.parent_span_id).toBe(started.context.span_id)
    // The question does not count as a call of the model.
    expect(events.find(({ type }) => type === 'act.completed')?.data).toMatchObject({
      success_count: 1,
      error_count: 0,
    })
    const said = events.filter(({ type }) => type === 'llm.generation').at(-1)?.data.messages
    expect(said.filter(({ role }: Json) => role === 'tool_result')).toHaveLength(1)
    const { data: messages } = (await call(api, 'GET', `/v1/sessions/${id}/messages`)).body
    expect(messages.map(({ role }: Json) => role)).toEqual(['user', 'agent', 'tool_result', 'agent'])
  })

  it('may ask again, several questions at once, and has all answers in the end', async () => {
    const { id, turn } = await startAsking(2)
    const first = turn.pending_tool_calls
    await submit(api, id, [accept(first[0].id, 'Ada')])
    const second = await nextPending(id, turn, first)
    expect(second).toHaveLength(2)
    expect((await submit(api, id, [accept(second[0].id, 'Bob')])).body.status).toBe('waitingfortoolresults')
    const declined = { tool_call_id: second[1].id, result: { action: 'decline' } }
    expect((await submit(api, id, [declined])).body.status).toBe('active')
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(resultsOf(events).map(answersOf)).toEqual([
      [
        { answers: { q0: { action: 'accept', content: { name: 'Ada' } } }, state: 'state 1' },
        {
          answers: { q0: { action: 'accept', content: { name: 'Bob' } }, q1: { action: 'decline' } },
          state: 'state 2',
        },
      ],
    ])
  })

  it('asks beside other calls, and beside another call that asks', async () => {
    const calls = [...callsOf('mine', 'echo'), { ...asking(1), id: 'b' }]
    const { id, turn } = await startAsking(1, { calls, tools: [clientTool('mine')] })
    const pending = await waitFor(async () => {
      const { pending_tool_calls } = await getTurn(api, id, turn.id)
      return pending_tool_calls.length === 3 && pending_tool_calls
    }, 'all three')
    expect(pending.map(({ name }: Json) => name).sort()).toEqual(['mcp_elicitation', 'mcp_elicitation', 'mine'])
    const results = pending.map(({ id, name }: Json) =>
      name === 'mine' ? { tool_call_id: id, result: 1 } : accept(id, 'Ada'),
    )
    expect((await submit(api, id, results)).body).toEqual({ accepted: 3, status: 'active' })
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(
      resultsOf(events)
        .map(({ tool_call_id, success }) => [tool_call_id, success])
        .sort(),
    ).toEqual([
      ['a', true],
      ['b', true],
    ])
  })

  it('may be answered while another tool runs, before the client is asked for its own', async () => {
    const calls = [...callsOf('mine'), { id: 'slow', name: 'wait', arguments: { ms: 1000 } }]
    const { id, turn } = await startAsking(1, { calls, tools: [clientTool('mine')] })
    const question = turn.pending_tool_calls.find(({ name }: Json) => name === QUESTION_TOOL)
    expect((await submit(api, id, [accept(question.id, 'Ada')])).body.accepted).toBe(1)
    const [mine] = await nextPending(id, turn, [question])
    expect(mine.name).toBe('mine')
    await submit(api, id, [{ tool_call_id: 'mine', result: 1 }])
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(resultsOf(events)).toMatchObject([{ success: true }])
  })

  it('refuses malformed answers', async () => {
    const { id, turn } = await startAsking()
    const tool_call_id = turn.pending_tool_calls[0].id
    for (const result of [undefined, null, 'yes', {}, { action: 'maybe' }, { action: 'accept', content: 'Ada' }]) {
      expectError(await submit(api, id, [{ tool_call_id, result }]), 400, /^tool_results\.0\.result: must be {"action"/)
    }
    expectError(
      await submit(api, id, [{ tool_call_id: 'a', result: 1 }]),
      400,
      /a is not pending; pending are: question_/,
    )
    expect((await cancel(api, id)).body.status).toBe('cancelled')
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(resultsOf(events, QUESTION_TOOL)[0]).toMatchObject({ tool_call_id, status: 'cancelled' })
    expect(resultsOf(events)[0]).toMatchObject({ tool_call_id: 'a', status: 'cancelled' })
  })

  it('fails when the client cannot answer', async () => {
    const { id, turn } = await startAsking()
    await submit(api, id, [{ tool_call_id: turn.pending_tool_calls[0].id, error: 'no such tool' }])
    const [result] = resultsOf(await waitUntilIdle(api, id))
    const error = 'The question of the tool to its user was not answered. no such tool'
    expect(result).toMatchObject({ status: 'error', error })
  })

  it.each(['nothing', 'key', 'state'])('fails when it asks with a wrong %s', async (text) => {
    const steps = [{ tool_calls: [{ id: 'a', name: 'elicit', arguments: { text } }] }, { text: 'done' }]
    const id = await createScriptedSession(api, steps, { capabilities: [{ ref: 'lab' }] })
    await post(api, id)
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const error = 'The tool asked its user in a form that cannot be recorded.'
    expect(resultsOf(events)).toMatchObject([{ status: 'error', error }])
  })

  it('fails when it asks without end', async () => {
    const { id, turn } = await startAsking(11)
    let pending = turn.pending_tool_calls
    for (let round = 1; round <= 10; round++) {
      if (round > 1) pending = await nextPending(id, turn, pending)
      await submit(
        api,
        id,
        pending.map((question: Json) => accept(question.id, 'Ada')),
      )
    }
    const [result] = resultsOf(await waitUntilIdle(api, id))
    expect(result).toMatchObject({ status: 'error', error: 'The tool asked its user 10 times and was not run again.' })
    expectSoundRecord(await listEvents(api, id))
  })
})
