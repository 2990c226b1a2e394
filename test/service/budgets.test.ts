import { createScriptedAgent } from '../support/agents.ts'
import {
  call,
  createScriptedSession,
  type Json,
  modelId,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { cancel, listTurns, post, postAndAsk, submit, turnIdOf, waitForEvent } from '../support/turns.ts'

let api: Organization
beforeEach(async () => {
  api = await newOrganization()
})

const LONG = { text: 'word '.repeat(200) }

async function addBudget(input: object): Promise<Json> {
  const { status, body } = await call(api, 'POST', '/v1/budgets', input)
  expect({ status, body }).toMatchObject({ status: 201 })
  return body
}

const budgetOf = async ({ id }: Json): Promise<Json> => (await call(api, 'GET', `/v1/budgets/${id}`)).body

async function runTurn(session: string, more: Record<string, unknown> = {}): Promise<Json> {
  const { body } = await call(api, 'POST', `/v1/sessions/${session}/messages?wait=60`, textMessage('Go', more))
  return body.turn
}

const toldOf = (): Promise<Json[]> =>
  api.query(
    `SELECT data FROM organization_events WHERE organization_id = $1 AND type = 'budget.reached' ORDER BY position`,
    [api.uuid],
  )

const addSession = async (agent: string): Promise<string> =>
  (await call(api, 'POST', '/v1/sessions', { agent_id: agent })).body.id

describe('a budget that stops turns', () => {
  it('is never passed, however many turns run at once', async () => {
    const agent = await createScriptedAgent(api, [LONG])
    const budget = await addBudget({ scope: 'agent', agent_id: agent, limit_tokens: 4000, period: 'day' })
    const sessions = await Promise.all(Array.from({ length: 50 }, () => addSession(agent)))
    const turns = await Promise.all(sessions.map((session) => runTurn(session)))
    const used = turns.reduce((sum, { usage }) => sum + usage.input_tokens + usage.output_tokens, 0)
    const failed = turns.filter(({ status }) => status === 'failed')
    expect(used).toBeGreaterThan(2000)
    expect(used).toBeLessThanOrEqual(4000)
    expect(await budgetOf(budget)).toMatchObject({ spent_tokens: used, reserved_tokens: 0, spent_usd: null })
    expect(failed.length).toBeGreaterThan(20)
    for (const turn of failed) {
      expect(turn).toMatchObject({
        error_code: 'budget_exceeded',
        error: "The agent's budget of 4000 tokens a day is used up.",
      })
    }
    const told = await toldOf()
    expect(told.map(({ data }) => data.percent)).toEqual(told.length === 1 ? [100] : [80, 100])
    expect(told.at(-1)?.data).toMatchObject({ budget_id: budget.id, scope: 'agent', unit: 'tokens', limit: '4000' })
  })

  it('of one turn is given with its message, and the session goes on', async () => {
    const session = await createScriptedSession(api, [LONG, LONG])
    expect(await runTurn(session, { budget: { limit_tokens: 100 } })).toMatchObject({ error_code: 'budget_exceeded' })
    expect(await runTurn(session)).toMatchObject({ status: 'completed' })
    const { body } = await call(api, 'GET', `/v1/budgets?session_id=${session}`)
    expect(body.data).toMatchObject([{ scope: 'turn', limit_tokens: 100, spent_tokens: 0 }])
    expect((await call(api, 'GET', '/v1/budgets')).body.data).toEqual([])
  })

  it('cuts an answer for which little is left', async () => {
    const session = await createScriptedSession(api, [{ text: 'word '.repeat(2000) }])
    await addBudget({ scope: 'organization', limit_tokens: 4000 })
    const turn = await runTurn(session)
    expect(turn).toMatchObject({ status: 'completed', finish_reason: 'length' })
    expect(turn.usage.output_tokens).toBeLessThanOrEqual(500)
  })

  it('counts what was streamed of a cancelled call', async () => {
    const session = await createScriptedSession(api, [{ text: 'word '.repeat(5000), tokens_per_second: 500 }])
    const budget = await addBudget({ scope: 'organization', limit_tokens: 1_000_000 })
    await post(api, session)
    await waitForEvent(api, session, 'output.message.delta', 3)
    expect(await budgetOf(budget)).toMatchObject({ spent_tokens: 0, reserved_tokens: expect.any(Number) })
    await cancel(api, session)
    const { spent_tokens, reserved_tokens } = await budgetOf(budget)
    expect(reserved_tokens).toBe(0)
    expect(spent_tokens).toBeGreaterThan(100)
    expect(spent_tokens).toBeLessThan(10_000)
  })

  it('counts what was streamed of calls that are cancelled together, and is free again', async () => {
    const steps = [{ text: 'word '.repeat(5000), tokens_per_second: 50 }]
    const agents = [await createScriptedAgent(api, steps), await createScriptedAgent(api, steps)]
    const sessions = await Promise.all(Array.from({ length: 30 }, (_, index) => addSession(agents[index % 2] ?? '')))
    const scopes = agents.map((agent_id) => ({ scope: 'agent', agent_id }))
    const budgets = await Promise.all(
      [{ scope: 'organization' }, ...scopes].map((scope) => addBudget({ ...scope, limit_tokens: 10_000_000 })),
    )
    await Promise.all(sessions.map((session) => post(api, session)))
    for (const session of sessions) await waitForEvent(api, session, 'output.message.delta')
    const { body } = await call(api, 'POST', '/v1/turns/cancel', { status: ['active'] })
    expect(body).toEqual({ cancelled: 30, more: false })
    const [all = {}, ...ofAgents] = await Promise.all(budgets.map(budgetOf))
    expect([all, ...ofAgents].map(({ reserved_tokens }) => reserved_tokens)).toEqual([0, 0, 0])
    expect(all.spent_tokens).toBeGreaterThan(0)
    expect(ofAgents.reduce((sum, { spent_tokens }) => sum + spent_tokens, 0)).toBe(all.spent_tokens)
  })

  it('begins with what was used in its period, and a new period with nothing', async () => {
    const session = await createScriptedSession(api, [LONG, LONG, LONG])
    const { usage } = await runTurn(session)
    const used = usage.input_tokens + usage.output_tokens
    const day = await addBudget({ scope: 'organization', limit_tokens: 2000, period: 'day' })
    expect(day).toMatchObject({ spent_tokens: used, limit_tokens: 2000, period: 'day' })
    expect(new Date(day.period_end).getTime() - new Date(day.period_start).getTime()).toBe(86_400_000)
    await api.query(
      `UPDATE budgets SET period_start = period_start - interval '1 day', spent = 5000 WHERE organization_id = $1`,
      [api.uuid],
    )
    expect(await budgetOf(day)).toMatchObject({ spent_tokens: 0, period_start: day.period_start })
    const next = await runTurn(session)
    expect(next).toMatchObject({ status: 'completed' })
    expect(await budgetOf(day)).toMatchObject({
      spent_tokens: next.usage.input_tokens + next.usage.output_tokens,
    })
  })
})

describe('a budget that asks', () => {
  const createAsking = async (period = 'total'): Promise<{ session: string; budget: Json }> => {
    const session = await createScriptedSession(api, [LONG, { text: 'Still here.' }])
    const budget = await addBudget({
      ...{ scope: 'session', session_id: session, limit_tokens: 100, step_tokens: 5000, on_reached: 'ask', period },
    })
    return { session, budget }
  }

  it('lets the turn wait, and is raised by a step when the call is approved', async () => {
    const { session, budget } = await createAsking()
    const turn = await postAndAsk(api, session)
    const [pending] = turn.pending_tool_calls
    expect(pending).toEqual({
      id: expect.stringMatching(/^question_/),
      name: 'raise_budget',
      kind: 'approval',
      arguments: {
        budget_id: budget.id,
        ...{ scope: 'session', period: 'total', limit: '100 tokens', spent: '0 tokens', raise_by: '5000 tokens' },
      },
    })
    expect((await submit(api, session, [{ tool_call_id: pending.id, result: 'yes' }])).status).toBe(400)
    const answered = await submit(api, session, [{ tool_call_id: pending.id, result: { approved: true } }])
    expect(answered.body).toEqual({ accepted: 1, status: 'active' })
    const events = await waitUntilIdle(api, session)
    expect(events.at(-2)).toMatchObject({ type: 'turn.completed' })
    expect(await budgetOf(budget)).toMatchObject({ limit_tokens: 5100, step_tokens: 5000 })
    // The conversation does not have the question.
    const generation = events.find(({ type }) => type === 'llm.generation')
    expect(JSON.stringify(generation?.data.messages)).not.toContain('raise_budget')
  })

  it('is not raised by an approval that comes in its next period', async () => {
    const { session, budget } = await createAsking('day')
    const [first] = (await postAndAsk(api, session)).pending_tool_calls
    await api.query("UPDATE budgets SET period_start = period_start - interval '1 day' WHERE organization_id = $1", [
      api.uuid,
    ])
    await submit(api, session, [{ tool_call_id: first.id, result: { approved: true } }])
    const question = async (): Promise<Json | undefined> =>
      (await listTurns(api, session))[0]?.pending_tool_calls.find(({ id }: Json) => id !== first.id)
    expect((await waitFor(question, 'another question')).arguments.limit).toBe('100 tokens')
    expect(await budgetOf(budget)).toMatchObject({ limit_tokens: 100 })
  })

  it('fails the turn when the call is denied', async () => {
    const { session, budget } = await createAsking()
    const { id, pending_tool_calls } = await postAndAsk(api, session)
    await submit(api, session, [{ tool_call_id: pending_tool_calls[0].id, result: { approved: false } }])
    await waitUntilIdle(api, session)
    const { body } = await call(api, 'GET', `/v1/sessions/${session}/turns/${id}`)
    expect(body).toMatchObject({
      status: 'failed',
      error_code: 'budget_exceeded',
      error: "The session's budget of 100 tokens is used up.",
    })
    expect(await budgetOf(budget)).toMatchObject({ limit_tokens: 100 })
  })
})

describe('what a budget must be', () => {
  const ofOrganization = { scope: 'organization' }
  it.each([
    ['no limit', ofOrganization, /one of limit_usd and limit_tokens/],
    ['two limits', { ...ofOrganization, limit_usd: '1', limit_tokens: 1 }, /one of limit_usd and limit_tokens/],
    ['nothing', { ...ofOrganization, limit_usd: '0' }, /limit_usd: must be a text/],
    ['less than nothing', { ...ofOrganization, limit_usd: '-1' }, /limit_usd: must be a text/],
    ['too many decimals', { ...ofOrganization, limit_usd: '0.1234567' }, /six decimals/],
    ['a number', { ...ofOrganization, limit_usd: 2.5 }, /limit_usd: must be a text/],
    ['an exponent', { ...ofOrganization, limit_usd: '1e9' }, /limit_usd: must be a text/],
    ['too much', { ...ofOrganization, limit_usd: '1000000000000' }, /limit_usd: must be a text/],
    ['half a token', { ...ofOrganization, limit_tokens: 1.5 }, /whole number of tokens/],
    ['huge tokens', { ...ofOrganization, limit_tokens: 1e18 }, /limit_tokens: must be/],
    ['another currency', { ...ofOrganization, limit_usd: '1', currency: 'EUR' }, /currency: is not supported/],
    ['no agent', { scope: 'agent', limit_usd: '1' }, /agent_id: is required/],
    [
      'an id too many',
      { ...ofOrganization, user_id: crypto.randomUUID(), limit_usd: '1' },
      /user_id: must be left out/,
    ],
    ['a step in tokens', { ...ofOrganization, limit_usd: '1', step_tokens: 5 }, /unit of the limit/],
  ])('is refused with %s', async (_name, input, sentence) => {
    const { status, body } = await call(api, 'POST', '/v1/budgets', input)
    expect([status, body.error]).toEqual([400, expect.stringMatching(sentence)])
  })

  it('is in its organization, and keeps its unit', async () => {
    const other = await newOrganization()
    const agent = await createScriptedAgent(other, [LONG])
    for (const input of [
      { scope: 'agent', agent_id: agent },
      { scope: 'user', user_id: crypto.randomUUID() },
      { scope: 'api_key', api_key_id: crypto.randomUUID() },
      { scope: 'session', session_id: `session_${'0'.repeat(32)}` },
    ])
      expect((await call(api, 'POST', '/v1/budgets', { ...input, limit_usd: '2.50' })).status).toBe(404)
    const budget = await addBudget({ scope: 'organization', limit_usd: '2.50' })
    expect(budget).toMatchObject({ limit_usd: '2.5', step_usd: '2.5', limit_tokens: null, on_reached: 'stop' })
    const path = `/v1/budgets/${budget.id}`
    expect((await call(api, 'PATCH', path, { limit_tokens: 5 })).body.error).toMatch(/the budget is in USD/)
    expect((await call(api, 'PATCH', path, { limit_usd: '3', on_reached: 'ask' })).body).toMatchObject({
      ...{ limit_usd: '3', on_reached: 'ask' },
    })
    expect((await call(other, 'GET', path)).status).toBe(404)
    expect((await call(other, 'DELETE', path)).status).toBe(404)
    expect((await call(api, 'DELETE', path)).status).toBe(204)
    expect((await call(api, 'GET', path)).status).toBe(404)
  })
})

describe('usage', () => {
  const SUMS = ['calls', 'input_tokens', 'output_tokens', 'cost_usd'] as const
  const usage = async (query: string): Promise<Json> => {
    const { status, body } = await call(api, 'GET', `/v1/usage?${query}`)
    expect({ status, body }).toMatchObject({ status: 200 })
    return body
  }

  it('has every finished call, and agrees with agents, sessions and turns', async () => {
    const loop = { tool_calls: [{ name: 'get_current_time', arguments: {} }] }
    const steps = [loop, { error: { status: 400, message: 'No.' } }, LONG]
    const agent = await createScriptedAgent(api, steps, { name: '=1+1', capabilities: [{ ref: 'current_time' }] })
    const [one, two] = [await addSession(agent), await addSession(agent)]
    expect(await runTurn(one)).toMatchObject({ status: 'failed', iterations: 2 })
    expect(await runTurn(one)).toMatchObject({ status: 'completed' })
    await post(api, two)
    await waitUntilIdle(api, two)
    const cancelled = turnIdOf(
      await post(api, two, 'Go', { controls: { model_id: await modelId(api, 'llmsim-latency') } }),
    )
    await waitForEvent(api, two, 'turn.started', 2)
    await cancel(api, two)
    expect(cancelled).toMatch(/^turn_/)

    const all = await usage('')
    const sumOf = (rows: Json[], field: string) => rows.reduce((sum, row) => sum + Number(row[field]), 0)
    for (const group of ['hour', 'day', 'agent', 'model', 'user', 'api_key', 'session']) {
      const { data, total } = await usage(`group_by=${group}`)
      expect(total).toEqual(all.total)
      for (const field of SUMS) expect(sumOf(data, field)).toBe(Number(all.total[field]))
    }
    const bySession = await usage('group_by=session&group_by=day')
    for (const { session_id, input_tokens, output_tokens, start } of bySession.data) {
      const session = (await call(api, 'GET', `/v1/sessions/${session_id}`)).body
      expect(session.usage).toMatchObject({ input_tokens, output_tokens })
      expect(start).toMatch(/T00:00:00\.000Z$/)
    }
    const ofAgent = (await call(api, 'GET', `/v1/agents/${agent}`)).body
    expect(ofAgent.usage).toMatchObject({
      ...{ input_tokens: all.total.input_tokens, output_tokens: all.total.output_tokens },
    })
    expect((await usage('group_by=agent')).data).toMatchObject([{ agent_id: agent, agent_name: '=1+1' }])
    expect((await usage(`agent_id=${agent}`)).total).toEqual(all.total)

    await call(api, 'DELETE', `/v1/sessions/${one}`)
    expect((await usage('')).total).toEqual(all.total)
    const left = await usage('group_by=session')
    expect(left.data.find((row: Json) => row.session_id === one)).toMatchObject({ session_title: null })

    const csv = await fetch(`${api.url}/v1/usage?group_by=agent&group_by=model`, {
      headers: { ...api.headers, Accept: 'text/csv' },
    })
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    const [head, first] = (await csv.text()).split('\r\n')
    expect(head).toMatch(/^agent_id,agent_name,model,calls,input_tokens,/)
    expect(first).toContain(`${agent},'=1+1,llmsim-script,`)
  })

  it.each([
    ['group_by=week', /group_by/],
    ['group_by=hour&group_by=day', /hour and day/],
    ['from=yesterday', /from: must be a time/],
    ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', /from: must be/],
    ['agent_id=42', /agent_id/],
  ])('is refused with %s', async (query, sentence) => {
    const { status, body } = await call(api, 'GET', `/v1/usage?${query}`)
    expect([status, body.error]).toEqual([400, expect.stringMatching(sentence)])
  })
})

describe('a budget while a process is away', () => {
  it('holds reservations until the calls end', async () => {
    const session = await createScriptedSession(api, [{ text: 'a b c', delay_ms: 1500 }])
    const budget = await addBudget({ scope: 'organization', limit_tokens: 50_000 })
    await post(api, session)
    await waitFor(async () => (await budgetOf(budget)).reserved_tokens > 0, 'a reservation')
    await waitUntilIdle(api, session)
    expect((await budgetOf(budget)).reserved_tokens).toBe(0)
  })
})
