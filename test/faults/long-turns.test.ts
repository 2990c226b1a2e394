import { countOf, isSoak } from '../support/counts.ts'
import { call, createScriptedSession, type Json, textMessage, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { expectSoundRecord, typesOf } from '../support/record.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import { withClient, workflowsOf } from '../support/temporal.ts'
import { post, waitForEvent } from '../support/turns.ts'

/** Most iterations of a turn. In a soak run this is the default of MAX_TURN_ITERATIONS. */
const MAX_ITERATIONS = countOf('turnIterations')

let service: TestService
beforeAll(async () => {
  const environment: Record<string, string> = isSoak ? {} : { MAX_TURN_ITERATIONS: `${MAX_ITERATIONS}` }
  service = await startService({ environment, capabilities: [createLab().capability] })
})
afterAll(() => service.stop())

const echoes = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ name: 'echo', arguments: { text: `${index}` } }))

async function play({ url }: TestService, steps: object[]): Promise<{ turnId: string; events: Json[] }> {
  const id = await createScriptedSession(url, steps, { capabilities: [{ ref: 'lab' }] })
  const startedAt = Date.now()
  const { body } = await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  const events = await waitUntilIdle(url, id)
  expectSoundRecord(events)
  const tools = typesOf(events).filter((type) => type === 'tool.started').length
  process.stdout.write(`${steps.length} steps, ${tools} tools: ${Date.now() - startedAt} ms\n`)
  return { turnId: body.id.replace('message_', 'turn_'), events }
}

const count = (events: Json[], type: string): number => typesOf(events).filter((other) => other === type).length

/** Expects that the last call's result reports that the call was not run. All others were. */
function expectLimitReached(events: Json[], iterations: number): void {
  expect(count(events, 'reason.completed')).toBe(iterations)
  expect(count(events, 'act.completed')).toBe(iterations - 1)
  const results = events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
  expect(results.map(({ status }) => status)).toEqual([...Array(iterations - 1).fill('success'), 'cancelled'])
  expect(results.at(-1).error).toContain(`limit of ${iterations} model calls`)
  expect(events.at(-2)).toMatchObject({ type: 'turn.failed', data: { error_code: 'max_iterations' } })
}

describe('a turn of many steps', () => {
  it('fails when its last allowed model call requests tools, and does not run them', async () => {
    const { events } = await play(service, Array(MAX_ITERATIONS + 1).fill({ tool_calls: echoes(1) }))
    expectLimitReached(events, MAX_ITERATIONS)
    expect(events.findLast(({ type }) => type === 'llm.generation').data.messages).toHaveLength(2 * MAX_ITERATIONS - 1)
  })

  it('continues as a new workflow run when its history is long, and records nothing twice', async () => {
    const rounds = 20
    const { turnId, events } = await play(service, [
      ...Array(rounds).fill({ tool_calls: echoes(30) }),
      { text: 'done' },
    ])
    expect(count(events, 'tool.completed')).toBe(rounds * 30)
    expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: rounds + 1 } })
    const runs = await workflowsOf(service, turnId)
    const history = await withClient(service, (client) => client.workflow.getHandle(turnId).fetchHistory())
    process.stdout.write(`runs of the workflow: ${runs}; events of the last one: ${history.events?.length}\n`)
    expect(runs).toBeGreaterThan(1)
  })
})

describe('MAX_TURN_SECONDS', () => {
  it('ends a turn that is older at its next model call, but does not count the time of its client', async () => {
    const environment = { MAX_TURN_SECONDS: '3', MAX_MODEL_CALL_SECONDS: '4' }
    await withService({ capabilities: [createLab().capability], environment }, async (small) => {
      const slow = { tool_calls: echoes(1), delay_ms: 3200 }
      const { events } = await play(small, [slow, { text: 'too late' }])
      expect(events.at(-2)).toMatchObject({ type: 'turn.failed', data: { error_code: 'turn_too_old' } })
      const endless = await play(small, [{ text: 'too late', delay_ms: 10_000 }])
      expect(endless.events.at(-2)).toMatchObject({
        type: 'turn.failed',
        data: { error_code: 'llm_error', error: 'The model did not finish its answer within 4 s.' },
      })
      const ask = { type: 'client_side', name: 'ask', description: 'Asks.', parameters: {} }
      const id = await createScriptedSession(
        small.url,
        [{ tool_calls: [{ name: 'ask', arguments: {}, id: 'c' }] }, { text: 'in time' }],
        { tools: [ask] },
      )
      await post(small.url, id)
      await waitForEvent(small.url, id, 'tool.call_requested')
      await new Promise((resolve) => setTimeout(resolve, 3500))
      const result = { tool_results: [{ tool_call_id: 'c', result: 'yes' }] }
      await call(small.url, 'POST', `/v1/sessions/${id}/tool-results`, result)
      expect((await waitUntilIdle(small.url, id)).at(-2)).toMatchObject({ type: 'turn.completed' })
    })
  })
})

describe('MAX_TURN_ITERATIONS', () => {
  it.each([1, 3])('of %s ends a turn that needs more, but not one whose last step is the answer', async (limit) => {
    const small = await startService({
      capabilities: [createLab().capability],
      environment: { MAX_TURN_ITERATIONS: `${limit}` },
    })
    try {
      const { events } = await play(small, Array(limit + 1).fill({ tool_calls: echoes(1) }))
      expectLimitReached(events, limit)
      const last = await play(small, [...Array(limit - 1).fill({ tool_calls: echoes(1) }), { text: 'at last' }])
      expect(last.events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: limit } })
      expect(count(last.events, 'act.completed')).toBe(limit - 1)
      const answer = last.events.findLast(({ type }) => type === 'output.message.completed')
      expect(answer.data.message.content).toEqual([{ type: 'text', text: 'at last' }])
    } finally {
      await small.stop()
    }
  })
})
