import { countOf } from '../support/counts.ts'
import { createScriptedSession, expectError, type Json, waitUntilIdle } from '../support/http.ts'
import { expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { callsOf, cancel, clientTool, listTurns, post, submit, waitForEvent } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const ROUNDS = countOf('clientToolRaces')
const STAGES = ['reason.completed', 'tool.started', 'tool.completed', 'tool.call_requested']
const CALLS = [...callsOf('ask'), { id: 'own', name: 'echo', arguments: {} }]
const RESULT = { tool_call_id: 'ask', result: 1 }

/**
 * Creates a session whose first turn has just reached a stage on the way to waiting for the client. Opens its stream.
 */
async function createSessionAt(stage: string | undefined): Promise<{ id: string; stream: OpenStream }> {
  const agent = { capabilities: [{ ref: 'lab' }], tools: [clientTool('ask')] }
  const id = await createScriptedSession(api, [{ tool_calls: CALLS }, { text: 'done' }], agent)
  const stream = await openStream(api, `/v1/sessions/${id}/sse`)
  await post(api, id)
  await stream.until((frame) => frame.event === stage)
  return { id, stream }
}

/** Waits until the session is idle. Expects a sound record and a stream that equals it. */
async function expectSoundEnd(id: string, stream: OpenStream): Promise<Json[]> {
  const events = await waitUntilIdle(api, id)
  expectSoundRecord(events)
  await stream.until((frame) => frame.data?.sequence === events.length)
  stream.close()
  expect(stream.events()).toEqual(events)
  return events
}

const statusesOf = async (id: string): Promise<string[]> => (await listTurns(api, id)).map((turn) => turn.status)

describe('a turn on its way to waiting for its client', () => {
  it('accepts a result that arrives as soon as it has asked', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { id, stream } = await createSessionAt('tool.call_requested')
      expect((await submit(api, id, [RESULT])).body).toEqual({ accepted: 1, status: 'active' })
      await stream.until((frame) => frame.event === 'session.idled', 5000)
      await expectSoundEnd(id, stream)
      expect(await statusesOf(id)).toEqual(['completed'])
    }
  })

  it.each([
    ['some', ['first'], [['second']]],
    ['all', ['first', 'second'], []],
  ])('keeps %s of the results that come while the tools of the service still run', async (_, early, requested) => {
    const calls = [...callsOf('first', 'second'), { id: 'own', name: 'wait', arguments: { ms: 2000 } }]
    const agent = { capabilities: [{ ref: 'lab' }], tools: [clientTool('first'), clientTool('second')] }
    const id = await createScriptedSession(api, [{ tool_calls: calls }, { text: 'done' }], agent)
    await post(api, id)
    await waitForEvent(api, id, 'tool.started')
    expect(await listTurns(api, id)).toEqual([expect.objectContaining({ status: 'active', pending_tool_calls: [] })])
    const results = early.map((tool_call_id) => ({ tool_call_id, result: 1 }))
    expectError(await submit(api, id, [...results, { tool_call_id: 'own', result: 1 }]), 400, 'own is not pending')
    expect((await submit(api, id, results)).body).toEqual({ accepted: results.length, status: 'active' })
    expectError(await submit(api, id, results), requested.length > 0 ? 400 : 409, 'not')
    for (const ids of requested) {
      await waitForEvent(api, id, 'tool.call_requested')
      const rest = ids.map((tool_call_id) => ({ tool_call_id, result: 1 }))
      expect((await submit(api, id, rest)).body).toEqual({ accepted: rest.length, status: 'active' })
    }
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const asked = events.filter(({ type }) => type === 'tool.call_requested')
    expect(asked.map(({ data }) => data.tool_calls.map((call: Json) => call.id))).toEqual(requested)
    expect(await statusesOf(id)).toEqual(['completed'])
  })

  it('can be cancelled at every stage, and the next turn runs', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { id, stream } = await createSessionAt(STAGES[round % STAGES.length])
      expect((await cancel(api, id)).body.status).toBe('cancelled')
      await post(api, id, 'And now?', {}, '?wait=60')
      const events = await expectSoundEnd(id, stream)
      expect(await statusesOf(id)).toEqual(['cancelled', 'completed'])
      const results = events.filter((event) => event.type === 'tool.completed').map((event) => event.data)
      expect(results.map(({ tool_call_id }) => tool_call_id).sort()).toEqual(['ask', 'own'])
      expect(results.find(({ tool_call_id }) => tool_call_id === 'ask').status).toBe('cancelled')
    }
  })

  it('is superseded by a message at any stage, or the message is queued', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { id, stream } = await createSessionAt(STAGES[round % STAGES.length])
      await post(api, id, 'And now?')
      await stream.until(({ event, data }) => event === 'turn.cancelled' || data?.type === 'tool.call_requested')
      const isWaiting = (await statusesOf(id))[0] === 'waiting'
      const submitted = await submit(api, id, [RESULT])
      expect(submitted.status).toBe(isWaiting ? 200 : 409)
      await expectSoundEnd(id, stream)
      expect(await statusesOf(id)).toEqual([isWaiting ? 'completed' : 'cancelled', 'completed'])
    }
  })
})
