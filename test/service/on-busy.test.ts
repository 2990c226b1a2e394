import { typesAtEnd } from '../support/cancelling.ts'
import {
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  modelId,
  textMessage,
  waitUntilIdle,
} from '../support/http.ts'
import { answerOf, eventsOfTurn, expectSoundRecord, turnOf, turnsOf } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
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
  submit,
  turnIdOf,
  waitForEvent,
} from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const WORDS = Array.from({ length: 200 }, (_, index) => `word${index}`).join(' ')
const SLOW_TEXT = { text: WORDS, tokens_per_second: 20 }
const REJECT = { on_busy: 'reject' }
const INTERRUPT = { on_busy: 'interrupt' }

async function createWaitingSession() {
  const steps = [{ tool_calls: callsOf('a') }, { text: 'done' }]
  const id = await createScriptedSession(api, steps, { tools: [clientTool('a')] })
  return { id, turnId: (await postAndAsk(api, id)).id }
}

describe('on_busy reject', () => {
  it('refuses the message while a turn runs, and names that turn', async () => {
    const { id, turns } = await createBusySession(api, 1)
    const before = await listEvents(api, id)
    expectError(await post(api, id, 'x', REJECT), 409, turns[0])
    expectError(await post(api, id, 'x', REJECT, '?wait=5'), 409, turns[0])
    const body = textMessage('x', REJECT)
    const stream = await openStream(api, `/v1/sessions/${id}/messages`, { method: 'POST', body })
    expect(stream.status).toBe(409)
    expect(await listEvents(api, id)).toEqual(before)
    expect(await listTurns(api, id)).toHaveLength(2)
    await cancel(api, id)
  })

  it('refuses it while a turn waits for its client, which goes on waiting', async () => {
    const { id, turnId } = await createWaitingSession()
    expectError(await post(api, id, 'x', REJECT), 409, turnId)
    expect((await getTurn(api, id, turnId)).status).toBe('waiting')
    await submit(api, id, [{ tool_call_id: 'a', result: 1 }])
    expect((await waitUntilIdle(api, id)).at(-2).type).toBe('turn.completed')
  })

  it('accepts it when the session is fresh, idle or cancelled', async () => {
    const id = await createSession(api)
    for (let round = 0; round < 2; round++) {
      expect((await post(api, id, 'x', REJECT, '?wait=60')).body.turn.status).toBe('completed')
    }
    const { id: cancelled } = await createBusySession(api, 0)
    await cancel(api, cancelled)
    expect((await post(api, cancelled, 'x', REJECT, '?wait=60')).body.turn.status).toBe('completed')
    expectSoundRecord(await listEvents(api, cancelled))
  })

  it('accepts one of many concurrent messages to an idle session', async () => {
    const id = await createScriptedSession(api, [MUTE])
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(api, id, 'x', REJECT)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)])
    await cancel(api, id)
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(turnsOf(events)).toHaveLength(1)
  })
})

describe('on_busy interrupt', () => {
  it('ends what runs and what is queued, then runs the message', async () => {
    const { id, turns } = await createBusySession(api, 2, [SLOW_TEXT, { text: 'the answer' }])
    await waitForEvent(api, id, 'output.message.delta', 3)
    const all = await openStream(api, `/v1/sessions/${id}/sse`)
    const own = turnIdOf(await post(api, id, 'Stop', INTERRUPT))
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const ends = events.filter((event) => event.type === 'turn.cancelled')
    expect(ends.map((event) => [turnOf(event), event.data.reason])).toEqual(
      turns.map((turnId) => [turnId, 'interrupted by a new message']),
    )
    expect(typesAtEnd(events, turns[0] ?? '', 3)).toEqual([
      ...['output.message.delta', 'output.message.completed', 'turn.cancelled'],
    ])
    const at = events.findIndex((event) => event.type === 'input.message' && turnOf(event) === own)
    expect(events.slice(at - 3, at).map((event) => event.type)).toEqual(Array(3).fill('turn.cancelled'))
    expect(answerOf(events, own)).toBe('the answer')
    expect(events.filter((event) => event.type === 'session.idled')).toHaveLength(1)
    await all.until((frame) => frame.event === 'session.idled')
    all.close()
    expect(all.events()).toEqual(events)
    const { messages } = events.findLast((event) => event.type === 'llm.generation').data
    expect(messages.at(-1).content[0].text).toBe('Stop')
    expect(messages[1].metadata).toMatchObject({ interrupted: true })
  })

  it('ends a turn that waits for its client', async () => {
    const { id, turnId } = await createWaitingSession()
    const { body } = await post(api, id, 'Stop', INTERRUPT, '?wait=60')
    expect(body.output.content[0].text).toBe('done')
    const events = await listEvents(api, id)
    expectSoundRecord(events)
    expect(typesAtEnd(events, turnId, 2)).toEqual(['tool.completed', 'turn.cancelled'])
    expectError(await submit(api, id, [{ tool_call_id: 'a', result: 1 }]), 409)
  })

  it('simply runs in a fresh or idle session', async () => {
    const id = await createSession(api)
    for (let round = 0; round < 2; round++) {
      expect((await post(api, id, 'x', INTERRUPT, '?wait=60')).body.turn.status).toBe('completed')
    }
    const events = await listEvents(api, id)
    expectSoundRecord(events)
    expect(events.map((event) => event.type)).not.toContain('turn.cancelled')
  })

  it('can be waited for', async () => {
    const { id } = await createBusySession(api, 1, [MUTE, { text: 'the answer' }])
    const { status, body } = await post(api, id, 'Stop', INTERRUPT, '?wait=60')
    expect([status, body.turn.status, body.output.content[0].text]).toEqual([200, 'completed', 'the answer'])
  })

  it('can be streamed, each stream having only its own turn, up to its end', async () => {
    const id = await createScriptedSession(api, [MUTE, { text: 'the answer' }])
    const streamed = (body: object) => openStream(api, `/v1/sessions/${id}/messages`, { method: 'POST', body })
    const running = await streamed(textMessage('one'))
    await running.until((frame) => frame.event === 'output.message.started')
    const queued = await streamed(textMessage('two'))
    const own = await streamed(textMessage('Stop', INTERRUPT))
    await Promise.all([running.ended, queued.ended, own.ended])
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const [first = '', second = '', third = ''] = turnsOf(events)
    const upToEnd = (turnId: string): Json[] =>
      eventsOfTurn(events, turnId).filter((event) => event.type !== 'session.idled')
    expect(running.events()).toEqual(upToEnd(first))
    expect(queued.events()).toEqual(upToEnd(second))
    expect(own.events()).toEqual(upToEnd(third))
    expect(running.events().at(-1).data.reason).toBe('interrupted by a new message')
    expect(own.events().at(-1).type).toBe('turn.completed')
  })

  it('by many at once lets only the last one run', async () => {
    const { id } = await createBusySession(api, 0, [MUTE, ...Array(20).fill({ text: 'the answer', delay_ms: 6000 })])
    const answers = await Promise.all(Array.from({ length: 15 }, (_, index) => post(api, id, `${index}`, INTERRUPT)))
    expect(answers.map(({ status }) => status)).toEqual(Array(15).fill(201))
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    const turns = await listTurns(api, id)
    expect(turns.map((turn) => turn.status)).toEqual([...Array(15).fill('cancelled'), 'completed'])
    expect(events.filter((event) => event.type === 'session.idled')).toHaveLength(1)
  })
})

describe('on_busy enqueue', () => {
  it.each([{}, { on_busy: 'enqueue' }, { on_busy: null }])(
    'answers 20 concurrent messages separately (%j)',
    async (more) => {
      const id = await createSession(api, { default_model_id: await modelId(api, 'llmsim-echo') })
      const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`)
      const answers = await Promise.all(texts.map((text) => post(api, id, text, more)))
      expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201))
      const events = await waitUntilIdle(api, id)
      expectSoundRecord(events)
      const bySequence = answers.sort((a, b) => a.body.sequence - b.body.sequence)
      expect(turnsOf(events)).toEqual(bySequence.map(turnIdOf))
      expect(turnsOf(events).map((turnId) => answerOf(events, turnId))).toEqual(
        bySequence.map(({ body }) => body.content[0].text),
      )
      // A first turn may be over before the other messages come: a session idles only when none waits.
      const afterIdling = events.filter((_, index) => events[index - 1]?.type === 'session.idled')
      expect(afterIdling.filter(({ type }) => type !== 'input.message')).toEqual([])
      expect(events.at(-1)?.type).toBe('session.idled')
      expect(await statusOf(api, id)).toBe('idle')
    },
  )

  it.each(['wait', '', 'REJECT', 1, true, {}, []])('%j is not a policy', async (on_busy) => {
    const id = await createSession(api)
    expectError(await post(api, id, 'x', { on_busy }), 400, /^on_busy: /)
    expect(await listEvents(api, id)).toEqual([])
  })
})
