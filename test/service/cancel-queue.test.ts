import { cancelAtOnce, typesAtEnd } from '../support/cancelling.ts'
import { countOf } from '../support/counts.ts'
import { createSession, listEvents, modelId, waitUntilIdle } from '../support/http.ts'
import { answerOf, eventsOfTurn, expectSoundRecord, turnOf, turnsOf } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
import { cancel, createBusySession, getTurn, listTurns, post, statusOf, turnIdOf } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

describe('cancelling a session with a queue', () => {
  it('ends what runs and all that waits, each with its own end, oldest first', async () => {
    const { id, turns } = await createBusySession(api, 5)
    const events = await cancelAtOnce(api, id)
    const ends = events.filter((event) => event.type === 'turn.cancelled')
    expect(ends.map(turnOf)).toEqual(turns)
    expect(events.slice(-7).map((event) => event.type)).toEqual([...Array(6).fill('turn.cancelled'), 'session.idled'])
    const [first, ...queued] = await listTurns(api, id)
    expect(first.started_at).not.toBeNull()
    for (const turn of queued) {
      expect(turn).toMatchObject({
        status: 'cancelled',
        started_at: null,
        finished_at: expect.any(String),
        iterations: 0,
      })
    }
    expect((await post(api, id, 'x', {}, '?wait=60')).body.turn.status).toBe('completed')
    const all = await listEvents(api, id)
    expectSoundRecord(all)
    const { messages } = all.findLast((event) => event.type === 'llm.generation').data
    expect(messages).toHaveLength(7)
  })

  it('of a queued turn by id: it leaves the queue, and nothing else happens', async () => {
    const { id, turns } = await createBusySession(api, 2, [{ text: 'first', delay_ms: 5000 }, { text: 'third' }])
    const [first = '', second = '', third = ''] = turns
    expect((await cancel(api, id, { turn_id: second })).body.status).toBe('cancelled')
    expect((await listTurns(api, id)).map((turn) => turn.status)).toEqual(['active', 'cancelled', 'queued'])
    expect(await statusOf(api, id)).toBe('active')
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect([answerOf(events, first), answerOf(events, third)]).toEqual(['first', 'third'])
    expect(eventsOfTurn(events, second).map((event) => event.type)).toEqual(['input.message', 'turn.cancelled'])
    expect(await getTurn(api, id, second)).toMatchObject({ status: 'cancelled', started_at: null })
  })

  it('of the only turn by id: the session becomes idle', async () => {
    const { id, turns } = await createBusySession(api, 0)
    const events = await cancelAtOnce(api, id, { turn_id: turns[0] })
    expect(typesAtEnd(events, turns[0] ?? '', 2)).toEqual(['turn.cancelled', 'session.idled'])
  })
})

describe('cancelling at the same moment as', () => {
  it.each([2, 10])('others do: of %i one cancels, the others find nothing', async (times) => {
    const { id, turns } = await createBusySession(api, 2)
    const answers = await Promise.all(Array.from({ length: times }, () => cancel(api, id)))
    expect(answers.map(({ body }) => body.status).sort()).toEqual(['cancelled', ...Array(times - 1).fill('no_op')])
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(events.filter((event) => event.type === 'turn.cancelled').map(turnOf)).toEqual(turns)
  })

  it('the turn ends: either it has its answer or it is cancelled, and the session goes on', async () => {
    const outcomes = { cancelled: 0, no_op: 0 }
    for (let round = 0; round < countOf('cancelRaces'); round++) {
      // A turn of the echo is over almost as soon as its message is accepted; one of the other is not.
      const model = round % 4 === 0 ? 'llmsim-latency' : 'llmsim-echo'
      const id = await createSession(api, { default_model_id: await modelId(api, model) })
      const stream = await openStream(api, `/v1/sessions/${id}/sse`)
      const turnId = turnIdOf(await post(api, id))
      // The rounds cover the time from before the turn's first event to its end, which a slow client meets in the last only.
      const seen =
        round % 6 === 5 ? 'turn.completed' : ['input.message', 'reason.started', 'output.message.delta'][round % 3]
      await stream.until((frame) => frame.event === seen)
      const { body } = await cancel(api, id)
      const turn = await getTurn(api, id, turnId)
      expect(turn.status).toBe(body.status === 'cancelled' ? 'cancelled' : 'completed')
      const events = await waitUntilIdle(api, id)
      expectSoundRecord(events)
      expect(events.at(-2).type).toBe(body.status === 'cancelled' ? 'turn.cancelled' : 'turn.completed')
      await stream.until((frame) => frame.event === 'session.idled')
      stream.close()
      expect(stream.events()).toEqual(events)
      expect((await post(api, id, 'x', {}, '?wait=60')).body.turn.status).toBe('completed')
      expectSoundRecord(await listEvents(api, id))
      outcomes[body.status as keyof typeof outcomes]++
    }
    process.stdout.write(`cancelled in the race: ${JSON.stringify(outcomes)}\n`)
    expect(Math.min(outcomes.cancelled, outcomes.no_op)).toBeGreaterThan(0)
  })

  it('messages come: each is cancelled or answered, and none is left behind', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await createSession(api, { default_model_id: await modelId(api, 'llmsim-echo') })
      const texts = ['one', 'two', 'three', 'four']
      await Promise.all(texts.flatMap((text) => [post(api, id, text), cancel(api, id)]))
      await post(api, id, 'last', {}, '?wait=60')
      const events = await waitUntilIdle(api, id)
      expectSoundRecord(events)
      const turns = await listTurns(api, id)
      expect(turns).toHaveLength(5)
      for (const turn of turns) expect(turn.status).toMatch(/^(completed|cancelled)$/)
      expect(answerOf(events, turnsOf(events).at(-1))).toBe('last')
      expect(await statusOf(api, id)).toBe('idle')
    }
  })
})
