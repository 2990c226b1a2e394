import { createScriptedAgent } from '../support/agents.ts'
import { call, createScriptedSession, expectError, type Json, waitFor, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { callsOf, cancel, clientTool, listTurns, MUTE, post, postAndAsk, submit } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const WORDS = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')
const echoes = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ name: 'echo', arguments: { text: `${index}` } }))
const lab = { capabilities: [{ ref: 'lab' }] }

describe('a turn that reaches a limit of its agent', () => {
  it.concurrent.each<[limits: object, steps: object[], code: string, cancelled: string[]]>([
    [
      { max_model_calls: 1 },
      [{ tool_calls: echoes(1) }],
      'max_iterations',
      ['The turn has reached its limit of 1 model calls.'],
    ],
    [
      { max_tool_calls: 2 },
      [{ tool_calls: echoes(2) }, { tool_calls: echoes(1) }],
      'max_tool_calls',
      ['The turn has reached its limit of 2 tool calls.'],
    ],
    [{ max_output_tokens: 16 }, [{ text: WORDS }], 'max_output_tokens', []],
    [
      { max_output_tokens: 20 },
      [{ text: 'Let me see.', tool_calls: echoes(1) }],
      'max_output_tokens',
      ['The turn has reached its limit of 20 output tokens.'],
    ],
    [{ max_answer_characters: 100 }, [{ text: WORDS }], 'answer_too_long', []],
    [{ max_turn_seconds: 1 }, [{ delay_ms: 1001, tool_calls: echoes(1) }, {}], 'turn_too_old', []],
  ])('%j fails as such, and the session goes on', async (limits, steps, error_code, cancelled) => {
    const done = error_code === 'turn_too_old' ? steps.slice(0, 1) : steps
    const id = await createScriptedSession(api, [...done, { text: 'Yes?' }], { ...lab, limits })
    await post(api, id)
    const events = await waitUntilIdle(api, id)
    expect(events.at(-2)).toMatchObject({ type: 'turn.failed', data: { error_code } })
    const errors = events.filter(({ data }) => data.status === 'cancelled').map(({ data }) => data.error)
    expect(errors).toEqual(cancelled)
    await post(api, id, 'And now?')
    expect((await waitUntilIdle(api, id)).at(-2)).toMatchObject({ type: 'turn.completed' })
  })

  it('keeps the answer that its limit on tokens has cut off, and uses no more', async () => {
    const id = await createScriptedSession(api, [{ text: WORDS }], { limits: { max_output_tokens: 16 } })
    await post(api, id)
    const events = await waitUntilIdle(api, id)
    const message = events.find(({ type }) => type === 'output.message.completed')?.data.message
    const generation = events.find(({ type }) => type === 'llm.generation')
    expect(generation?.data.metadata.max_output_tokens).toBe(16)
    expect(message.content).toEqual([{ type: 'text', text: WORDS.split(' ').slice(0, 16).join(' ') }])
    expect(await listTurns(api, id)).toMatchObject([{ usage: { output_tokens: 16 } }])
  })
})

describe('the limits of an agent', () => {
  const agentWith = (limits: unknown) => call(api, 'POST', '/v1/agents', { name: 'A', system_prompt: 'Help.', limits })

  it.each<[limits: unknown, sentence: RegExp]>([
    [{ max_model_calls: 0 }, /^limits.max_model_calls: /],
    [{ max_model_calls: 1.5 }, /^limits.max_model_calls: /],
    [{ max_model_calls: 101 }, /^limits.max_model_calls: must be at most 100, the limit of this installation$/],
    [{ max_turn_seconds: 86_401 }, /^limits.max_turn_seconds: must be at most 86400/],
    [{ max_answer_characters: 9_000_000 }, /^limits.max_answer_characters: must be at most 8388608/],
    [{ max_output_tokens: 15 }, /^limits.max_output_tokens: /],
    [{ max_running_turns: 1e12 }, /^limits.max_running_turns: /],
    [{ max_tokens: 100 }, /^limits: .*max_tokens/],
    ['none', /^limits: /],
  ])('%j are refused', async (limits, sentence) => {
    expectError(await agentWith(limits), 400, sentence)
  })

  it('are changed as a whole, kept by copies and documents, and taken back as they are', async () => {
    const limits = { max_model_calls: 20, max_tool_calls: 50, max_running_turns: 3 }
    const { body: agent } = await agentWith({ ...limits, max_turn_seconds: null })
    const path = `/v1/agents/${agent.id}`
    expect(agent.limits).toEqual(limits)
    expect((await call(api, 'POST', `${path}/copy`)).body.limits).toEqual(limits)
    const { body: document } = await call(api, 'GET', `${path}/export`)
    const headers = { 'Content-Type': 'text/markdown' }
    expect((await call(api, 'POST', '/v1/agents/import', document, headers)).body.limits).toEqual(limits)
    expect((await call(api, 'PATCH', path, { name: 'B' })).body.limits).toEqual(limits)
    expect((await call(api, 'PATCH', path, { limits: { max_tool_calls: 9 } })).body.limits).toEqual({
      max_tool_calls: 9,
    })
    // The installation's limit was higher once.
    await api.query(`UPDATE agents SET limits = '{"max_model_calls": 500}' WHERE id::text = $1`, [toUuid(agent.id)])
    const { body: high } = await call(api, 'GET', path)
    expect((await call(api, 'PUT', path, high)).body.limits).toEqual({ max_model_calls: 500 })
    expectError(await call(api, 'PATCH', path, { limits: { max_model_calls: 501 } }), 400)
    expect((await call(api, 'PATCH', path, { limits: {} })).body.limits).toEqual({})
  })
})

describe('turns of an agent that may run at once', () => {
  /** Creates an agent and sessions with it. */
  async function createSessions(count: number, steps: object[], limit: number, more: object = {}): Promise<string[]> {
    const agent_id = await createScriptedAgent(api, steps, { limits: { max_running_turns: limit }, ...more })
    const create = async () => (await call(api, 'POST', '/v1/sessions', { agent_id })).body.id
    return Promise.all(Array.from({ length: count }, create))
  }
  const begun = (id: string, steps = 1) =>
    waitFor(async () => (await listTurns(api, id))[0]?.iterations === steps, `${id} to make model call ${steps}`)

  it.concurrent('run one after the other, in the order of their messages, also within a session', async () => {
    const sessions = await createSessions(5, [{ text: 'One.' }, { text: 'Two.' }], 1)
    for (const id of [...sessions, ...sessions.toReversed()]) await post(api, id)
    for (const id of sessions) await waitUntilIdle(api, id)
    const turns: Json[] = (await Promise.all(sessions.map((id) => listTurns(api, id)))).flat()
    const byMessage = turns.toSorted((one, other) => (one.created_at + one.id < other.created_at + other.id ? -1 : 1))
    const times = byMessage.flatMap(({ started_at, finished_at }) => [started_at, finished_at])
    expect(times).toEqual(times.toSorted())
    expect(byMessage.every(({ status }) => status === 'completed')).toBe(true)
  })

  it.concurrent('leave their place when they wait for their client, and take one again after that', async () => {
    const ask = { tool_calls: callsOf('ask') }
    const [one = '', two = '', three = ''] = await createSessions(3, [ask, MUTE], 1, { tools: [clientTool('ask')] })
    await postAndAsk(api, one)
    await postAndAsk(api, two)
    const answer = [{ tool_call_id: 'ask', result: 1 }]
    await submit(api, one, answer)
    await begun(one, 2)
    await post(api, three)
    await submit(api, two, answer)
    await waitFor(async () => (await waits(two)) === 'waits', 'the second turn to wait for a place')
    await cancel(api, one)
    await begun(two, 2)
    expect(await listTurns(api, three)).toMatchObject([{ status: 'queued' }])
    await cancel(api, two)
    await begun(three)
    await cancel(api, three)
  })

  it.concurrent('begin when the limit is raised or removed', async () => {
    const [one = '', two = '', three = ''] = await createSessions(3, [MUTE], 1)
    for (const id of [one, two, three]) await post(api, id)
    await begun(one)
    const path = `/v1/agents/${(await call(api, 'GET', `/v1/sessions/${one}`)).body.agent_id}`
    await call(api, 'PATCH', path, { limits: { max_running_turns: 2 } })
    await begun(two)
    expect(await listTurns(api, three)).toMatchObject([{ status: 'queued' }])
    await call(api, 'PATCH', path, { limits: {} })
    await begun(three)
    for (const id of [one, two, three]) await cancel(api, id)
  })

  const waits = async (session: string): Promise<string> => {
    const sql = `SELECT admission FROM turns WHERE session_id::text = $1 AND status = 'active'`
    return (await api.query(sql, [toUuid(session)]))[0]?.admission
  }
})
