import { typesAtEnd } from '../support/cancelling.ts'
import {
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  modelId,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { answerOf, eventsOfTurn, expectSoundRecord, turnOf, turnsOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
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

let service: TestService
let url: string
beforeAll(async () => {
  service = await startService()
  url = service.url
})
afterAll(() => service.stop())

const WORDS = Array.from({ length: 200 }, (_, index) => `word${index}`).join(' ')
const SLOW_TEXT = { text: WORDS, tokens_per_second: 20 }
const REJECT = { on_busy: 'reject' }
const INTERRUPT = { on_busy: 'interrupt' }

async function createWaitingSession() {
  const steps = [{ tool_calls: callsOf('a') }, { text: 'done' }]
  const id = await createScriptedSession(url, steps, { tools: [clientTool('a')] })
  return { id, turnId: (await postAndAsk(url, id)).id }
}

describe('on_busy reject', () => {
  it('refuses the message while a turn runs, and names that turn', async () => {
    const { id, turns } = await createBusySession(url, 1)
    const before = await listEvents(url, id)
    expectError(await post(url, id, 'x', REJECT), 409, turns[0])
    expectError(await post(url, id, 'x', REJECT, '?wait=5'), 409, turns[0])
    const body = textMessage('x', REJECT)
    const stream = await openStream(url, `/v1/sessions/${id}/messages`, { method: 'POST', body })
    expect(stream.status).toBe(409)
    expect(await listEvents(url, id)).toEqual(before)
    expect(await listTurns(url, id)).toHaveLength(2)
    await cancel(url, id)
  })

  it('refuses it while a turn waits for its client, which goes on waiting', async () => {
    const { id, turnId } = await createWaitingSession()
    expectError(await post(url, id, 'x', REJECT), 409, turnId)
    expect((await getTurn(url, id, turnId)).status).toBe('waiting')
    await submit(url, id, [{ tool_call_id: 'a', result: 1 }])
    expect((await waitUntilIdle(url, id)).at(-2).type).toBe('turn.completed')
  })

  it('takes it when the session is fresh, idle or cancelled', async () => {
    const id = await createSession(url)
    for (let round = 0; round < 2; round++) {
      expect((await post(url, id, 'x', REJECT, '?wait=60')).body.turn.status).toBe('completed')
    }
    const { id: cancelled } = await createBusySession(url, 0)
    await cancel(url, cancelled)
    expect((await post(url, cancelled, 'x', REJECT, '?wait=60')).body.turn.status).toBe('completed')
    expectSoundRecord(await listEvents(url, cancelled))
  })

  it('takes one of many that come at once to an idle session', async () => {
    const id = await createScriptedSession(url, [MUTE])
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(url, id, 'x', REJECT)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)])
    await cancel(url, id)
    const events = await waitUntilIdle(url, id)
    expectSoundRecord(events)
    expect(turnsOf(events)).toHaveLength(1)
  })
})

describe('on_busy interrupt', () => {
  it('ends what runs and what is queued, then runs the message', async () => {
    const { id, turns } = await createBusySession(url, 2, [SLOW_TEXT, { text: 'the answer' }])
    await waitForEvent(url, id, 'output.message.delta', 3)
    const all = await openStream(url, `/v1/sessions/${id}/sse`)
    const own = turnIdOf(await post(url, id, 'Stop', INTERRUPT))
    const events = await waitUntilIdle(url, id)
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
    const { body } = await post(url, id, 'Stop', INTERRUPT, '?wait=60')
    expect(body.output.content[0].text).toBe('done')
    const events = await listEvents(url, id)
    expectSoundRecord(events)
    expect(typesAtEnd(events, turnId, 2)).toEqual(['tool.completed', 'turn.cancelled'])
    expectError(await submit(url, id, [{ tool_call_id: 'a', result: 1 }]), 409)
  })

  it('just runs in a session that is fresh or idle', async () => {
    const id = await createSession(url)
    for (let round = 0; round < 2; round++) {
      expect((await post(url, id, 'x', INTERRUPT, '?wait=60')).body.turn.status).toBe('completed')
    }
    const events = await listEvents(url, id)
    expectSoundRecord(events)
    expect(events.map((event) => event.type)).not.toContain('turn.cancelled')
  })

  it('can be waited for', async () => {
    const { id } = await createBusySession(url, 1, [MUTE, { text: 'the answer' }])
    const { status, body } = await post(url, id, 'Stop', INTERRUPT, '?wait=60')
    expect([status, body.turn.status, body.output.content[0].text]).toEqual([200, 'completed', 'the answer'])
  })

  it('can be streamed; the stream has its own turn only, those of the others their ends', async () => {
    const id = await createScriptedSession(url, [MUTE, { text: 'the answer' }])
    const streamed = (body: object) => openStream(url, `/v1/sessions/${id}/messages`, { method: 'POST', body })
    const running = await streamed(textMessage('one'))
    await running.until((frame) => frame.event === 'output.message.started')
    const queued = await streamed(textMessage('two'))
    const own = await streamed(textMessage('Stop', INTERRUPT))
    await Promise.all([running.ended, queued.ended, own.ended])
    const events = await waitUntilIdle(url, id)
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

  it('by many at once leaves one to run: the last that came', async () => {
    const { id } = await createBusySession(url, 0, [MUTE, ...Array(20).fill({ text: 'the answer', delay_ms: 6000 })])
    const answers = await Promise.all(Array.from({ length: 15 }, (_, index) => post(url, id, `${index}`, INTERRUPT)))
    expect(answers.map(({ status }) => status)).toEqual(Array(15).fill(201))
    const events = await waitUntilIdle(url, id)
    expectSoundRecord(events)
    const turns = await listTurns(url, id)
    expect(turns.map((turn) => turn.status)).toEqual([...Array(15).fill('cancelled'), 'completed'])
    expect(events.filter((event) => event.type === 'session.idled')).toHaveLength(1)
  })
})

describe('on_busy enqueue', () => {
  it.each([{}, { on_busy: 'enqueue' }, { on_busy: null }])('answers 20 at once, each for itself (%j)', async (more) => {
    const id = await createSession(url, { default_model_id: await modelId(url, 'llmsim-echo') })
    const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`)
    const answers = await Promise.all(texts.map((text) => post(url, id, text, more)))
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201))
    const events = await waitUntilIdle(url, id)
    expectSoundRecord(events)
    const bySequence = answers.sort((a, b) => a.body.sequence - b.body.sequence)
    expect(turnsOf(events)).toEqual(bySequence.map(turnIdOf))
    expect(turnsOf(events).map((turnId) => answerOf(events, turnId))).toEqual(
      bySequence.map(({ body }) => body.content[0].text),
    )
    expect(events.filter((event) => event.type === 'session.idled')).toHaveLength(1)
    expect(await statusOf(url, id)).toBe('idle')
  })

  it.each(['wait', '', 'REJECT', 1, true, {}, []])('%j is no policy', async (on_busy) => {
    const id = await createSession(url)
    expectError(await post(url, id, 'x', { on_busy }), 400, /^on_busy: /)
    expect(await listEvents(url, id)).toEqual([])
  })
})

describe('a session with 1000 unfinished turns', () => {
  let full: TestService
  beforeAll(async () => {
    full = await startService({ worker: false })
  })
  afterAll(() => full.stop())

  /** As if 999 more messages had been posted behind the first. */
  async function createFullSession(): Promise<string> {
    const { db } = full.platform.deps
    const id = await createSession(full.url)
    await post(full.url, id)
    const { id: _, inputSequence, ...first } = await db.turn.findFirstOrThrow({ orderBy: { createdAt: 'desc' } })
    const { sessionId, organizationId } = first
    await db.$executeRaw`
      INSERT INTO turns (id, organization_id, session_id, input_sequence)
      SELECT gen_random_uuid(), ${organizationId}::uuid, ${sessionId}::uuid, ${inputSequence} + n
      FROM generate_series(1, 999) AS n`
    await db.session.update({ where: { id: sessionId }, data: { lastSequence: { increment: 999 } } })
    return id
  }

  it('takes no more, and says when to come again', async () => {
    const id = await createFullSession()
    for (const query of ['', '?wait=5']) {
      const answer = await post(full.url, id, 'x', {}, query)
      expectError(answer, 429, /1000 messages/)
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expectError(await post(full.url, id, 'x', REJECT), 409)
    expect(await full.platform.deps.db.turn.count({ where: { finishedAt: null } })).toBe(1000)
    const [turn] = await listTurns(full.url, id, '?limit=1')
    expect((await cancel(full.url, id, { turn_id: turn.id })).body.status).toBe('cancelled')
    expect((await post(full.url, id)).status).toBe(201)
    expectError(await post(full.url, id), 429)
    await full.platform.deps.db.session.deleteMany()
  })

  it.each(['cancel', 'interrupt'])('is ended as a whole by %s, in one transaction', async (how) => {
    const id = await createFullSession()
    const startedAt = performance.now()
    const answer = how === 'cancel' ? await cancel(full.url, id) : await post(full.url, id, 'Stop', INTERRUPT)
    const tookMs = Math.round(performance.now() - startedAt)
    process.stdout.write(`1000 turns ended by ${how}: ${tookMs} ms\n`)
    expect(answer.status).toBe(how === 'cancel' ? 200 : 201)
    const unfinished = await full.platform.deps.db.turn.count({ where: { finishedAt: null } })
    expect(unfinished).toBe(how === 'cancel' ? 0 : 1)
    await waitFor(async () => (await statusOf(full.url, id)) === (how === 'cancel' ? 'idle' : 'started'), 'the status')
    await full.platform.deps.db.session.deleteMany()
  })
})
