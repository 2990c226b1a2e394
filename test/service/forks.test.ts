import { createScriptedAgent } from '../support/agents.ts'
import {
  type Answer,
  call,
  createSession,
  expectError,
  type Json,
  listEvents,
  modelId,
  textMessage,
  unknownId,
  waitFor,
} from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import {
  cancel,
  clientTool,
  createBusySession,
  listTurns,
  MUTE,
  post,
  postAndAsk,
  submit,
  waitForEvent,
} from '../support/turns.ts'

let api: Organization
let echo: string
beforeAll(async () => {
  api = await newOrganization()
  echo = await modelId(api, 'llmsim-echo')
})

const fork = (id: string, body: object = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  call(api, 'POST', `/v1/sessions/${id}/fork`, body, headers)
const made = async (id: string, body: object = {}): Promise<Json> => {
  const { status, body: answer } = await fork(id, body)
  expect({ status, answer }).toMatchObject({ status: 201 })
  return answer
}
const run = async (id: string, text: string, more: Record<string, unknown> = {}): Promise<Json> =>
  (await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage(text, more))).body
const messagesOf = async (id: string): Promise<Json[]> =>
  (await call(api, 'GET', `/v1/sessions/${id}/messages`)).body.data
const textsOf = async (id: string): Promise<string[]> =>
  (await messagesOf(id)).map(({ content }) => content.map((part: Json) => part.text ?? part.type).join())
const untilEnded = (id: string): Promise<Json> =>
  waitFor(async () => {
    const [turn] = (await call(api, 'GET', `/v1/sessions/${id}/turns?limit=1`)).body.data
    return turn !== undefined && turn.finished_at !== null && turn
  }, `the turn of ${id} to end`)
const echoing = (more: object = {}) => createSession(api, { default_model_id: echo }, more)

describe('a fork', () => {
  it('has the history up to a turn, goes on by itself, and costs nothing', async () => {
    const id = await echoing({ title: 'Trip', tags: ['a'] })
    const [first, second] = [await run(id, 'Zebra'), await run(id, 'Two')]
    const before = (await call(api, 'GET', '/v1/usage?group_by=session')).body
    const counts = (await call(api, 'GET', '/v1/turns/counts')).body
    const { session, message } = await made(id, { at: first.message.id })
    expect(message).toBeNull()
    expect(session).toMatchObject({
      ...{
        title: 'Trip',
        tags: ['a'],
        status: 'idle',
        last_turn_status: 'completed',
        preview: 'Zebra',
        output_preview: 'Zebra',
      },
      forked_from: { session_id: id, turn_id: first.turn.id, message_id: null, data_as_of: 'now' },
      usage: { input_tokens: 0, output_tokens: 0 },
      cost_usd: '0',
    })
    expect(await textsOf(session.id)).toEqual(['Zebra', 'Zebra'])
    const events = await listEvents(api, session.id)
    const own = (await listEvents(api, id)).filter(({ sequence }) => sequence <= events.at(-1).sequence)
    expect(events.map(({ type, sequence, ts }) => [type, sequence, ts])).toEqual(
      own.flatMap(({ type, sequence, ts }) => (type.endsWith('.delta') ? [] : [[type, sequence, ts]])),
    )
    expect(JSON.stringify(events)).not.toMatch(new RegExp(`${first.turn.id}|${first.message.id}|${id}`))
    const [turn] = await listTurns(api, session.id)
    expect(turn).toMatchObject({ status: 'completed', iterations: 1, usage: { input_tokens: 0 }, cost_usd: '0' })
    expect((await call(api, 'GET', '/v1/usage?group_by=session')).body.data).toEqual(before.data)
    expect((await call(api, 'GET', '/v1/turns/counts')).body).toEqual(counts)
    expect((await call(api, 'GET', '/v1/turns?search=Zebra')).body.data.map((one: Json) => one.id)).toEqual([
      first.turn.id,
    ])
    expect((await call(api, 'GET', '/v1/sessions?search=Zebra')).body.total).toBe(2)
    await run(session.id, 'Three')
    expect(await textsOf(session.id)).toEqual(['Zebra', 'Zebra', 'Three', 'Three'])
    expect(await textsOf(id)).toEqual(['Zebra', 'Zebra', 'Two', 'Two'])
    const generation = (await listEvents(api, session.id, '?types=llm.generation')).at(-1)
    expect(generation.data.messages.map(({ role }: Json) => role)).toEqual(['user', 'agent', 'user'])
    const last = await made(id)
    expect(last.session.forked_from).toMatchObject({ turn_id: second.turn.id })
  })

  it('edits a message, or runs a turn again with another model or version', async () => {
    const id = await echoing()
    const settings = { controls: { reasoning: { effort: 'low' } }, metadata: { a: 1 } }
    const [first, second] = [await run(id, 'One'), await run(id, 'Two', settings)]
    const agent = (await call(api, 'GET', `/v1/sessions/${id}`)).body.agent_id
    const edited = await made(id, { at: second.message.id, message: { content: 'Else' } })
    expect(edited.session.forked_from).toMatchObject({ turn_id: first.turn.id, message_id: second.message.id })
    expect(edited.message).toMatchObject({ session_id: edited.session.id, content: [{ type: 'text', text: 'Else' }] })
    expect(edited.message.controls).toEqual(settings.controls)
    await untilEnded(edited.session.id)
    expect(await textsOf(edited.session.id)).toEqual(['One', 'One', 'Else', 'Else'])
    await call(api, 'PATCH', `/v1/agents/${agent}`, { system_prompt: 'Now.' })
    const reply = await modelId(api, 'llmsim-default')
    const answer = second.output.id
    const again = await made(id, { at: answer, again: true, controls: { model_id: reply }, agent_version: 2 })
    expect(again.message).toMatchObject({ controls: { model_id: reply }, metadata: { a: 1 } })
    const turn = await untilEnded(again.session.id)
    expect(turn).toMatchObject({ status: 'completed', agent_version: 2 })
    expect((await textsOf(again.session.id)).slice(0, 3)).toEqual(['One', 'One', 'Two'])
    const same = await made(id, { at: first.turn.id, again: true })
    expect(await untilEnded(same.session.id)).toMatchObject({ status: 'completed', agent_version: 1 })
    expect(same.session.forked_from).toMatchObject({ turn_id: null, message_id: first.message.id })
    expect(await textsOf(same.session.id)).toEqual(['One', 'One'])
    const { data } = (await call(api, 'GET', `/v1/sessions/${again.session.id}/tree`)).body
    const ofFork = await made(edited.session.id)
    const tree = (await call(api, 'GET', `/v1/sessions/${id}/tree`)).body.data
    expect(data).toEqual(tree.slice(0, 4).map((one: Json) => expect.objectContaining({ id: one.id })))
    expect(tree.map((one: Json) => [one.id, one.forked_from?.session_id])).toEqual([
      [id, undefined],
      ...[edited, again, same].map(({ session }) => [session.id, id]),
      [ofFork.session.id, edited.session.id],
    ])
  })

  it('has settings and version as they were then', async () => {
    const id = await echoing({ tools: [clientTool('one')] })
    const agent = (await call(api, 'GET', `/v1/sessions/${id}`)).body.agent_id
    const { turn } = await run(id, 'One')
    await call(api, 'PATCH', `/v1/agents/${agent}`, { system_prompt: 'Now.' })
    await call(api, 'PATCH', `/v1/sessions/${id}`, { tools: [clientTool('two')], model_id: echo })
    await call(api, 'PATCH', `/v1/sessions/${id}`, { tools: [clientTool('three')] })
    const { turn: later } = await run(id, 'Two')
    const settings = async (at: string, more: object = {}) => {
      const { tools, model_id, agent_version } = (await made(id, { at, ...more })).session
      return [tools[0].name, model_id, agent_version]
    }
    expect(await settings(turn.id)).toEqual(['one', null, 1])
    expect(await settings(later.id)).toEqual(['three', echo, 2])
    expect(await settings(later.id, { agent_version: 0 })).toEqual(['three', echo, null])
    const { session } = await made(id)
    const [message] = await messagesOf(session.id)
    const { tools, model_id, agent_version } = (await made(session.id, { at: message?.id })).session
    expect([tools[0].name, model_id, agent_version]).toEqual(['one', null, 1])
  })

  it('ends before what is unfinished, and is made only once for a key', async () => {
    const { agent } = { agent: await createScriptedAgent(api, [{ text: 'First' }, MUTE]) }
    const id = (await call(api, 'POST', '/v1/sessions', { agent_id: agent })).body.id
    const { turn } = await run(id, 'One')
    const muted = await post(api, id, 'Two')
    await waitForEvent(api, id, 'turn.started', 2)
    const queued = await post(api, id, 'Three')
    for (const at of [muted, queued]) expectError(await fork(id, { at: at.body.id }), 409, /is not finished/)
    expectError(await fork(id, { at: queued.body.id, again: true }), 409, /is not finished/)
    expect((await made(id)).session.forked_from).toMatchObject({ turn_id: turn.id })
    const key = { 'Idempotency-Key': 'once' }
    const body = { at: muted.body.id, message: { content: 'Instead' } }
    const answers = await Promise.all([1, 2, 3].map(() => fork(id, body, key)))
    expect(new Set(answers.map((one) => one.body.session.id)).size).toBe(1)
    const [
      {
        body: { session },
      },
    ] = answers as [Answer]
    expect((await messagesOf(session.id)).filter(({ role }) => role === 'user')).toHaveLength(2)
    expect((await call(api, 'GET', `/v1/sessions/${id}/tree`)).body.data).toHaveLength(3)
    await call(api, 'POST', `/v1/sessions/${id}/cancel`)
    await call(api, 'POST', `/v1/sessions/${session.id}/cancel`)
  })

  it('of a session that waits for its client ends before that turn, and with its results after it', async () => {
    const agent = await createScriptedAgent(
      api,
      [{ text: 'First' }, { tool_calls: [{ id: 'c1', name: 'ask', arguments: {} }] }, { text: 'Done' }],
      {
        tools: [clientTool('ask')],
      },
    )
    const id = (await call(api, 'POST', '/v1/sessions', { agent_id: agent })).body.id
    const { turn } = await run(id, 'One')
    const waiting = await postAndAsk(api, id)
    const request = (await listEvents(api, id, '?types=tool.call_requested'))[0]
    expectError(await fork(id, { at: request.id }), 409, /is not finished/)
    expect((await made(id)).session).toMatchObject({ status: 'idle', forked_from: { turn_id: turn.id } })
    await post(api, id, 'Also', { on_busy: 'steer' })
    await submit(api, id, [{ tool_call_id: 'c1', result: { answer: 1 } }])
    await untilEnded(id)
    const own = await messagesOf(id)
    const result = own.find(({ role }) => role === 'tool_result')
    for (const at of [request.id, result.id]) {
      const { session } = await made(id, { at })
      expect(session.forked_from).toMatchObject({ turn_id: waiting.id })
      const copied = await messagesOf(session.id)
      expect(copied.map(({ role, sequence }) => [role, sequence])).toEqual(
        own.map(({ role, sequence }) => [role, sequence]),
      )
      expect(new Set(copied.map((one) => one.id)).size).toBe(7)
    }
  })

  it('has the end of a turn during which a queued message was cancelled', async () => {
    const { id, turns } = await createBusySession(api, 1, [{ text: 'Done', delay_ms: 4000 }])
    const [running, queued] = turns
    expect((await cancel(api, id, { turn_id: queued })).body.status).toBe('cancelled')
    await waitForEvent(api, id, 'turn.completed')
    const placesOf = async (of: string) => (await messagesOf(of)).map(({ role, sequence }) => [role, sequence])
    const places = await placesOf(id)
    for (const body of [{}, { at: queued }]) {
      const { session } = await made(id, body)
      expect(await placesOf(session.id)).toEqual(places)
      expect((await listEvents(api, session.id, '?types=turn.completed')).length).toBe(1)
    }
    const deltas = await listEvents(api, id, '?types=output.message.delta')
    await api.query("DELETE FROM events WHERE session_id = $1 AND type = 'output.message.delta'", [uuidOf(id)])
    const atDelta = await made(id, { at: deltas.at(-1)?.id })
    expect(atDelta.session.forked_from).toMatchObject({ turn_id: running })
  })

  it('does not repeat a compaction', async () => {
    const id = await echoing()
    await run(id, 'One')
    const { turn } = (await call(api, 'POST', `/v1/sessions/${id}/compact?wait=60`, {})).body
    for (const more of [{ again: true }, { message: { content: 'Else' } }]) {
      expectError(await fork(id, { at: turn.id, ...more }), 400, /^at: .*compaction/)
    }
    const { session } = await made(id, { at: turn.id })
    expect(session.forked_from).toMatchObject({ turn_id: turn.id })
    const [compacted] = await listEvents(api, session.id, '?types=session.compacted')
    const [first, answer] = await messagesOf(session.id)
    expect(compacted.data.dropped).toEqual({ messages: 2, first_message_id: first?.id, last_message_id: answer?.id })
  })

  it('begins at an event that retention has removed', async () => {
    const id = await echoing()
    const { turn } = await run(id, 'One')
    const deltas = await listEvents(api, id, '?types=output.message.delta')
    await api.query("DELETE FROM events WHERE session_id = $1 AND type = 'output.message.delta'", [uuidOf(id)])
    expect((await made(id, { at: deltas[0].id })).session.forked_from).toMatchObject({ turn_id: turn.id })
  })

  it.each([
    ['another kind of id', () => ({ at: unknownId('agent') }), 400, /^at: must be the id of a message/],
    ['an unknown message', () => ({ at: unknownId('message') }), 400, /^at: is not a message/],
    [
      'an event of another session',
      (_: Json, other: Json) => ({ at: other.event }),
      400,
      /^at: is not the id of an event/,
    ],
    ['a message of another session', (_: Json, other: Json) => ({ at: other.message }), 400, /^at: is not a message/],
    [
      'message and again',
      (own: Json) => ({ at: own.message, again: true, message: { content: 'x' } }),
      400,
      /^again: /,
    ],
    ['again without at', () => ({ again: true }), 400, /^at: is required/],
    ['controls alone', (own: Json) => ({ at: own.message, controls: {} }), 400, /^controls: need/],
    [
      'an unknown model',
      (own: Json) => ({ at: own.message, again: true, controls: { model_id: unknownId('model') } }),
      400,
      /^controls.model_id: /,
    ],
    ['an unknown version', (own: Json) => ({ at: own.message, agent_version: 7 }), 400, /^agent_version: /],
  ])('refuses %s', async (_, bodyOf, status, sentence) => {
    const [own, other] = await Promise.all([one, another])
    expectError(await fork(own.id, bodyOf(own, other)), status, sentence)
    expect((await call(api, 'GET', `/v1/sessions/${own.id}/tree`)).body.data).toHaveLength(1)
  })
  let one: Promise<Json>
  let another: Promise<Json>
  beforeAll(() => {
    const make = async () => {
      const id = await echoing()
      const { message } = await run(id, 'One')
      return { id, message: message.id, event: (await listEvents(api, id))[0].id }
    }
    one = make()
    another = make()
  })
})

const uuidOf = (id: string): string => id.replace(/^[a-z]+_(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
