import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  textMessage,
  unknownId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { expectSoundRecord, turnOf, turnsOf } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { callsOf, cancel, clientTool, getTurn, MUTE, postAndAsk, submit, waitForEvent } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const turns = (id: string, query = '') => call(api, 'GET', `/v1/sessions/${id}/turns${query}`)
const post = (id: string, query = '') => call(api, 'POST', `/v1/sessions/${id}/messages${query}`, textMessage('Hello'))
const statuses = (body: Json): string[] => body.data.map((turn: Json) => turn.status)

describe('turns', () => {
  it('are listed newest first, each with its outcome', async () => {
    const id = await createScriptedSession(api, [{ text: 'Fine.' }, { error: { status: 400, message: 'No.' } }, MUTE])
    const first = await post(id, '?wait=60')
    const second = await post(id, '?wait=60')
    await post(id)
    await post(id)
    const { body } = await waitFor(async () => {
      const answer = await turns(id)
      return answer.body.data[1]?.status === 'active' && answer
    }, 'the third turn to be active')
    expect(statuses(body)).toEqual(['queued', 'active', 'failed', 'completed'])
    expect(body.data[3]).toEqual(first.body.turn)
    expect(body.data[2]).toEqual(second.body.turn)
    expect(body.data[0]).toMatchObject({ started_at: null, finished_at: null, pending_tool_calls: [], iterations: 0 })
    expect(first.body.turn).toMatchObject({
      id: expect.stringMatching(/^turn_[0-9a-f]{32}$/),
      session_id: id,
      workflow_id: first.body.turn.id,
      started_at: expect.stringMatching(/Z$/),
      finished_at: expect.stringMatching(/Z$/),
    })
    const session = (await call(api, 'GET', `/v1/sessions/${id}`)).body
    expect([session.status, session.last_turn_status]).toEqual(['active', 'failed'])
    expect(statuses((await turns(id, '?status=failed')).body)).toEqual(['failed'])
    expect(statuses((await turns(id, '?status=waiting')).body)).toEqual([])
    expect(statuses((await turns(id, '?offset=2&limit=1')).body)).toEqual(['failed'])
    await cancel(api, id)
    const [listed] = (await call(api, 'GET', '/v1/sessions?limit=1')).body.data
    expect([listed.id, listed.last_turn_status]).toEqual([id, 'cancelled'])
  })

  it('can be fetched by id, in their own session only', async () => {
    const id = await createSession(api)
    const { turn } = (await post(id, '?wait=60')).body
    const got = await call(api, 'GET', `/v1/sessions/${id.replace('session_', 'sess_')}/turns/${turn.id}`)
    expect([got.status, got.body]).toEqual([200, turn])
    const other = await createSession(api)
    for (const path of [
      `${other}/turns/${turn.id}`,
      `${id}/turns/${unknownId('turn')}`,
      `${unknownId('session')}/turns/${turn.id}`,
    ]) {
      expectError(await call(api, 'GET', `/v1/sessions/${path}`), 404, 'not found')
    }
  })

  it('are not found in a session that is not there', async () => {
    expectError(await turns(unknownId('session')), 404, 'Session not found')
  })

  it('are not listed for a wrong query or id', async () => {
    const id = await createSession(api)
    expectError(await turns(id, '?status=done'), 400, /^status: .*completed/)
    for (const limit of [-1, 0]) expectError(await turns(id, `?limit=${limit}`), 400, /^limit: /)
    expectError(await turns('session_1'), 400, /^session_id: /)
    expectError(await call(api, 'GET', `/v1/sessions/${id}/turns/${unknownId('message')}`), 400, /^turn_id: /)
  })
})

describe('turns that wait', () => {
  it('are listed over all sessions, newest first, with their calls', async () => {
    const own = await newOrganization()
    const ask = [{ tool_calls: [{ name: 'ask_user', arguments: { question: 'Which?' } }] }, { text: 'Thanks.' }]
    const waiting: Json[] = []
    for (const _ of [1, 2, 3]) {
      const id = await createScriptedSession(own, ask, { tools: [clientTool('ask_user')] })
      waiting.unshift(await postAndAsk(own, id))
    }
    await createSession(own)
    const list = async (query = '') => (await call(own, 'GET', `/v1/turns?status=waiting${query}`)).body.data
    expect(await list()).toEqual(waiting)
    expect(await list('&limit=1&offset=1')).toEqual([waiting[1]])
    expect(waiting[0]?.pending_tool_calls).toMatchObject([{ name: 'ask_user', arguments: { question: 'Which?' } }])
    const [answered] = waiting
    await submit(own, answered?.session_id, [{ tool_call_id: answered?.pending_tool_calls[0].id, result: 'this' }])
    await waitUntilIdle(own, answered?.session_id)
    expect(await list()).toEqual(waiting.slice(1))
    expect((await call(api, 'GET', '/v1/turns?status=waiting')).body.data).not.toContainEqual(waiting[1])
  })
})

describe('a turn that asks its client', () => {
  const steps = [{ tool_calls: callsOf('a', 'b') }, { text: 'done' }]
  const tools = [clientTool('a'), clientTool('b')]
  const idsOf = (turn: Json): string[] => turn.pending_tool_calls.map((pending: Json) => pending.id)

  it('waits, with its remaining calls, and is found by that status', async () => {
    const id = await createScriptedSession(api, steps, { tools })
    const turn = await postAndAsk(api, id)
    await post(id.replace('session_', 'sess_'), '?wait=60')
    const other = await createScriptedSession(api, steps, { tools })
    const waiting = await postAndAsk(api, other)
    expect(idsOf(waiting)).toEqual(['a', 'b'])
    await submit(api, other, [{ tool_call_id: 'a', result: 1 }])
    const { body } = await turns(other, '?status=waiting')
    expect(body.data.map(idsOf)).toEqual([['b']])
    expect(body.data[0]).toMatchObject({ id: waiting.id, finished_at: null, error: null })
    expect((await turns(other, '?status=active')).body.data).toEqual([])

    // The message arrived while the turn waited and superseded it.
    expect(statuses((await turns(id)).body)).toEqual(['completed', 'cancelled'])
    const { data: cancelled } = (await turns(id, '?status=cancelled')).body
    expect(cancelled).toEqual([
      expect.objectContaining({ id: turn.id, pending_tool_calls: [], finished_at: expect.stringMatching(/Z$/) }),
    ])
  })

  it('is active again when it has its results, and sums up its steps in the end', async () => {
    const id = await createScriptedSession(api, [steps[0] ?? {}, { text: 'slow', delay_ms: 3000 }], { tools })
    const { id: turnId } = await postAndAsk(api, id)
    await submit(api, id, [
      { tool_call_id: 'a', result: 1 },
      { tool_call_id: 'b', result: 2 },
    ])
    expect(await getTurn(api, id, turnId)).toMatchObject({ status: 'active', pending_tool_calls: [] })
    const events = await waitUntilIdle(api, id)
    const turn = await getTurn(api, id, turnId)
    const ends = events.filter((event) => event.type === 'reason.completed')
    const sum = (field: string): number => ends.reduce((total, event) => total + event.data.usage[field], 0)
    expect(turn).toMatchObject({ status: 'completed', iterations: 2, error: null, pending_tool_calls: [] })
    expect(turn.usage).toMatchObject({ input_tokens: sum('input_tokens'), output_tokens: sum('output_tokens') })
    expect(ends[0].data.usage.output_tokens * ends[1].data.usage.output_tokens).toBeGreaterThan(0)
    expect(events.at(-2).data.usage).toEqual(turn.usage)
    const [session, agent] = [await call(api, 'GET', `/v1/sessions/${id}`), await call(api, 'GET', '/v1/agents')]
    expect(session.body.usage).toEqual(turn.usage)
    expect(agent.body.data.find((one: Json) => one.id === session.body.agent_id).usage).toEqual(turn.usage)
    const startedAt = Date.parse(turn.started_at)
    expect(startedAt).toBeGreaterThanOrEqual(Date.parse(turn.created_at))
    expect(Date.parse(turn.finished_at)).toBeGreaterThanOrEqual(startedAt + 3000)
  })

  it('does not keep the request that posted its message waiting', async () => {
    const id = await createScriptedSession(api, steps, { tools })
    const { status, body } = await post(id, '?wait=60')
    expect([status, body.turn.status, idsOf(body.turn)]).toEqual([202, 'waiting', ['a', 'b']])
  })

  it('with queued turns behind it keeps its place, and they keep theirs', async () => {
    const slow = { tool_calls: callsOf('a', 'b'), delay_ms: 2000 }
    for (const how of ['answer', 'cancel', 'message'] as const) {
      const id = await createScriptedSession(api, [slow, { text: 'one' }, { text: 'two' }, { text: 'three' }], {
        tools,
      })
      const waiting = postAndAsk(api, id)
      await waitForEvent(api, id, 'output.message.started')
      await post(id)
      const { id: turnId } = await waiting
      expect(statuses((await turns(id)).body)).toEqual(['queued', 'waiting'])
      if (how === 'answer')
        await submit(api, id, [
          { tool_call_id: 'a', result: 1 },
          { tool_call_id: 'b', result: 2 },
        ])
      if (how === 'cancel') await cancel(api, id, { turn_id: turnId })
      if (how === 'message') await post(id)
      const events = await waitUntilIdle(api, id)
      expectSoundRecord(events)
      const queued = how === 'message' ? ['completed', 'completed'] : ['completed']
      expect(statuses((await turns(id)).body)).toEqual([...queued, how === 'answer' ? 'completed' : 'cancelled'])
      const own = turnsOf(events).slice(how === 'answer' ? 0 : 1)
      const texts = ['one', 'two'].slice(0, own.length)
      expect(
        own.map(
          (turnId) =>
            events.findLast((event) => event.type === 'reason.completed' && turnOf(event) === turnId).data.text_preview,
        ),
      ).toEqual(texts)
      expect(events.filter((event) => event.type === 'session.idled')).toHaveLength(1)
    }
  })
})
