import { createScriptedAgent } from '../support/agents.ts'
import {
  call,
  expectError,
  type Json,
  listEvents,
  modelId,
  unknownId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import {
  cancel,
  clientTool,
  getTurn,
  listTurns,
  post,
  postAndAsk,
  submit,
  turnIdOf,
  waitForEvent,
} from '../support/turns.ts'

let api: Organization
let echo: string
beforeAll(async () => {
  api = await newOrganization()
  echo = await modelId(api, 'llmsim-echo')
})

const createAgent = async (name: string, more: object = {}): Promise<string> =>
  (await call(api, 'POST', '/v1/agents', { name, system_prompt: 'x', default_model_id: echo, ...more })).body.id

/** Returns an agent that makes the calls in one answer, and then says "Done". */
const asking = (capabilities: unknown[], calls: Json[], more: object = {}): Promise<string> =>
  createScriptedAgent(api, [{ tool_calls: calls }, { text: 'Done' }], { capabilities, ...more })

const ask = (name: string, message = 'Hello', id?: string): Json => ({
  name,
  arguments: { message },
  ...(id && { id }),
})
const sessionOf = async (agent_id: string, more: object = {}): Promise<string> =>
  (await call(api, 'POST', '/v1/sessions', { agent_id, ...more })).body.id
const run = async (session: string): Promise<Json> => (await post(api, session, 'Go', {}, '?wait=60')).body

/** Returns the results of a session's calls, by the ids of the calls, with the links to child turns. */
async function resultsOf(session: string): Promise<Json[]> {
  const events = await listEvents(api, session)
  const started = events.filter(({ type }) => type === 'tool.started')
  started.sort((a, b) => (a.data.tool_call.id < b.data.tool_call.id ? -1 : 1))
  return started.map(({ data }) => {
    const end = events.find((one) => one.type === 'tool.completed' && one.data.tool_call_id === data.tool_call.id)
    const text = end?.data.result?.[0]?.text
    return { child: data.child, error: end?.data.error ?? null, value: text && JSON.parse(text) }
  })
}

describe('an agent as a tool', () => {
  it('answers in its own session, linked both ways, with its usage added up', async () => {
    const helper = await createAgent('Help Desk', { description: 'Knows all.' })
    const agent = await asking([`agent:${helper}`], [ask('ask_help_desk', 'Who are you?')])
    const session = await sessionOf(agent)
    const { turn, output } = await run(session)
    expect(output.content).toEqual([{ type: 'text', text: 'Done' }])
    const [result] = await resultsOf(session)
    expect(result).toEqual({
      error: null,
      child: { agent_id: helper, session_id: result?.value.session_id, turn_id: result?.value.turn_id },
      value: { ...result?.value, answer: 'Who are you?' },
    })
    const child = await getTurn(api, result?.value.session_id, result?.value.turn_id)
    expect(child).toMatchObject({
      ...{ status: 'completed', agent_id: helper, children: null, user_id: turn.user_id },
      parent: { session_id: session, turn_id: turn.id },
    })
    expect(turn).toMatchObject({ parent: null, children: { turns: 1, usage: child.usage, cost_usd: child.cost_usd } })
    expect((await listTurns(api, session))[0]?.children).toEqual(turn.children)
    const { body } = await call(api, 'GET', `/v1/capabilities/agent:${helper}`)
    expect(body).toMatchObject({ name: 'Help Desk', category: 'agent', tool_definitions: [{ name: 'ask_help_desk' }] })
  })

  it('is asked several times at once, each time in a new session, or always in the same', async () => {
    const helper = await createAgent('Helper')
    const other = await createAgent('Helper')
    const capabilities = [helper, { ref: `agent:${other}`, config: { session: 'same' } }]
    const second = `ask_helper_${other.slice(-6)}`
    const calls = ['a', 'b', 'c'].flatMap((id) => [ask('ask_helper', id, `n${id}`), ask(second, id, `s${id}`)])
    const agent = await createScriptedAgent(
      api,
      [{ tool_calls: calls }, { text: 'One' }, { tool_calls: [ask(second, 'd', 'sd')] }, { text: 'Two' }],
      { capabilities },
    )
    const session = await sessionOf(agent)
    expect((await run(session)).turn.children.turns).toBe(6)
    await run(session)
    const results = await resultsOf(session)
    expect(results.map(({ value }) => value?.answer).sort()).toEqual(['a', 'a', 'b', 'b', 'c', 'c', 'd'])
    const placesOf = (agentId: string) =>
      results.filter(({ child }) => child.agent_id === agentId).map(({ child }) => child.session_id)
    expect(new Set(placesOf(helper)).size).toBe(3)
    expect(new Set(placesOf(other)).size).toBe(1)
    expect(await listTurns(api, placesOf(other)[0])).toHaveLength(4)
  })

  it('may ask agents itself, four deep, but none that waits for it', async () => {
    let below = await createAgent('Leaf')
    const chain = [below]
    for (const depth of [4, 3, 2, 1, 0]) {
      below = await asking([`agent:${below}`], [ask(depth === 4 ? 'ask_leaf' : `ask_a${depth + 1}`)], {
        name: `A${depth}`,
      })
      chain.unshift(below)
    }
    const session = await sessionOf(below)
    const { turn } = await run(session)
    expect(turn.children.turns).toBe(4)
    let results = await resultsOf(session)
    for (const _ of chain.slice(1, -1)) results = await resultsOf(results[0]?.child.session_id)
    expect(results).toMatchObject([{ error: expect.stringMatching(/asked by 4 others, one by another, cannot/) }])

    const second = await createAgent('Second')
    const first = await asking([`agent:${second}`], [ask('ask_second')], { name: 'First' })
    const script = `\`\`\`llmsim\n${JSON.stringify([{ tool_calls: [ask('ask_first')] }, { text: 'Back' }])}\n\`\`\``
    const change = {
      system_prompt: script,
      default_model_id: await modelId(api, 'llmsim-script'),
      capabilities: [first],
    }
    expect((await call(api, 'PATCH', `/v1/agents/${second}`, change)).status).toBe(200)
    const circle = await sessionOf(first)
    await run(circle)
    const [asked] = await resultsOf(circle)
    expect(asked?.value.answer).toBe('Back')
    expect((await resultsOf(asked?.child.session_id))[0]?.error).toMatch(/waits for this answer itself/)
  })

  it('is cancelled with the turn that asked', async () => {
    const helper = await createAgent('Slow', { default_model_id: await modelId(api, 'llmsim-lorem-2000') })
    const session = await sessionOf(await asking([helper], [ask('ask_slow', '1', 'a'), ask('ask_slow', '2', 'b')]))
    const turnId = turnIdOf(await post(api, session))
    const events = await waitForEvent(api, session, 'tool.started', 2)
    const children = events.filter(({ type }) => type === 'tool.started').map(({ data }) => data.child)
    const exists = async (id: string) => (await call(api, 'GET', `/v1/sessions/${id}`)).status === 200
    for (const { session_id } of children) await waitFor(() => exists(session_id), 'the session of a child turn')
    for (const { session_id } of children) await waitForEvent(api, session_id, 'output.message.delta')
    const sessions = [session, ...children.map(({ session_id }) => session_id)].map(toUuid)
    for (const [table, column] of [
      ['turns', 'started_at'],
      ['events', 'ts'],
    ]) {
      await api.query(`UPDATE ${table} SET ${column} = now() - interval '16 minutes' WHERE session_id = ANY ($1)`, [
        sessions,
      ])
    }
    // A caller that waits is not stalled.
    const { stalled } = await getTurn(api, session, turnId)
    await cancel(api, session)
    expect(stalled).toBe(false)
    for (const { session_id, turn_id } of children) {
      const ended = await waitFor(async () => {
        const turn = await getTurn(api, session_id, turn_id)
        return turn.finished_at !== null && turn
      }, 'the end of a child turn')
      expect(ended.status).toBe('cancelled')
      const [{ data }] = (await listEvents(api, session_id)).filter(({ type }) => type === 'turn.cancelled') as [Json]
      expect(data.reason).toBe('cancelled with the turn that asked')
    }
    expect((await getTurn(api, session, turnId)).status).toBe('cancelled')
  })

  it('may wait for its own client, and its failure goes to the model', async () => {
    const tools = [clientTool('look')]
    const helper = await createScriptedAgent(
      api,
      [{ tool_calls: [{ name: 'look', arguments: {} }] }, { text: 'Seen' }],
      { name: 'Eye', tools },
    )
    const broken = await createScriptedAgent(api, [{ error: { status: 400, message: 'No.' } }], { name: 'Broken' })
    const session = await sessionOf(
      await asking([helper, broken], [ask('ask_eye', 'x', 'a'), ask('ask_broken', 'x', 'b')]),
    )
    const posted = post(api, session, 'Go', {}, '?wait=60')
    const events = await waitForEvent(api, session, 'tool.started', 2)
    const { child } = events.find(({ data }) => data.tool_call?.id === 'a')?.data ?? {}
    await waitFor(
      async () => (await call(api, 'GET', `/v1/sessions/${child.session_id}`)).status === 200,
      'the session',
    )
    await waitForEvent(api, child.session_id, 'tool.call_requested')
    const [pending] = (await getTurn(api, child.session_id, child.turn_id)).pending_tool_calls
    await submit(api, child.session_id, [{ tool_call_id: pending.id, result: 'a tree' }])
    expect((await posted).body.turn.status).toBe('completed')
    expect(await resultsOf(session)).toMatchObject([
      { value: { answer: 'Seen' } },
      { error: expect.stringMatching(/^The agent failed: .*No\./) },
    ])
  })

  it('counts towards the budgets of the session that asked', async () => {
    const helper = await createAgent('Costly', { default_model_id: await modelId(api, 'llmsim-lorem-2000') })
    const session = await sessionOf(await asking([helper], [ask('ask_costly')]))
    const scope = { scope: 'session', session_id: session, limit_tokens: 700, on_reached: 'stop' }
    const budget = await call(api, 'POST', '/v1/budgets', scope)
    expect(budget).toMatchObject({ status: 201 })
    const { turn } = await run(session)
    expect(turn).toMatchObject({ status: 'failed', error_code: 'budget_exceeded', children: { turns: 1 } })
    expect(turn.children.usage.output_tokens).toBeLessThan(700)
  })

  it('starts at most 32 turns for a turn', async () => {
    const helper = await createAgent('Many')
    const calls = Array.from({ length: 33 }, (_, n) => ask('ask_many', `${n}`, `c${n}`))
    const session = await sessionOf(await asking([helper], calls))
    expect((await run(session)).turn.children.turns).toBe(32)
    const errors = (await resultsOf(session)).flatMap(({ error }) => error ?? [])
    expect(errors).toEqual(['A turn may ask agents 32 times, which this one has done.'])
  })

  it.each([
    ['of no agent', () => `agent:${unknownId('agent')}`, /there is no capability/],
    [
      'of another organization',
      async () => {
        const stranger = await newOrganization()
        const made = await call(stranger, 'POST', '/v1/agents', { name: 'X', system_prompt: 'x' })
        return `agent:${made.body.id}`
      },
      /there is no capability/,
    ],
    [
      'with a wrong configuration',
      async () => ({ ref: await createAgent('C'), config: { session: 'old' } }),
      /capabilities\.0\.config: must be \{"session": "new"\}/,
    ],
  ])('is refused as a capability %s', async (_, capability, sentence) => {
    const input = { name: 'A', system_prompt: 'x', capabilities: [await capability()] }
    expectError(await call(api, 'POST', '/v1/agents', input), 400, sentence)
  })

  it('needs an approval also when it is renamed, answers then once, and never has the name of a tool of the service', async () => {
    const clerk = await createAgent('Clerk')
    const user = await createAgent('User')
    const tools = [{ type: 'builtin', name: 'ask_clerk', policy: 'requires_approval' }]
    const secondly = { name: 'ask_secretary', arguments: { message: 'Hello' } }
    const agent = await createScriptedAgent(api, [{ tool_calls: [secondly] }, { text: 'Done' }], {
      ...{ capabilities: [clerk, user, 'ask_user'], tools },
    })
    await call(api, 'PATCH', `/v1/agents/${clerk}`, { name: 'Secretary' })
    const session = await sessionOf(agent)
    const { id, pending_tool_calls } = await postAndAsk(api, session)
    expect(pending_tool_calls).toMatchObject([{ name: 'ask_secretary', kind: 'approval' }])
    await submit(api, session, [{ tool_call_id: pending_tool_calls[0].id, result: { approved: true } }])
    await waitUntilIdle(api, session)
    const [asked] = await resultsOf(session)
    expect(asked).toMatchObject({ error: null, value: { answer: 'Hello', session_id: asked?.child?.session_id } })
    const { children, takeovers } = await getTurn(api, session, id)
    expect([children.turns, takeovers]).toEqual([1, undefined])
    const { body } = await call(api, 'GET', `/v1/capabilities/agent:${user}`)
    expect(body.tool_definitions[0].name).toBe(`ask_user_${user.slice(-6)}`)
  })

  it('that was deleted or archived is missing among the tools', async () => {
    const helper = await createAgent('Gone')
    const agent = await asking([helper], [ask('ask_gone')])
    await call(api, 'PATCH', `/v1/agents/${helper}`, { status: 'archived' })
    const session = await sessionOf(agent)
    await run(session)
    const completed = (await listEvents(api, session)).find(({ type }) => type === 'tool.completed')
    expect(completed?.data.error).toMatch(/^There is no tool "ask_gone"/)
  })
})
