import pg from 'pg'
import type { EventBroker } from '../../domain/events/live/event-broker.ts'
import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  listEvents,
  textMessage,
  unknownId,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { cancel } from '../support/turns.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const JSON_TYPE = { 'Content-Type': 'application/json' }

/** Counts the broker's current subscriptions. */
function countFollowers(hub: EventBroker): { now(): number; stop(): void } {
  const { subscribe } = hub
  let followers = 0
  hub.subscribe = (...of) => {
    const inbox = subscribe(...of)
    const { close } = inbox
    followers++
    inbox.close = () => {
      followers--
      close()
    }
    return inbox
  }
  return {
    now: () => followers,
    stop: () => {
      hub.subscribe = subscribe
    },
  }
}

/** Counts the statements in this database that wait for a lock. In a transaction it would count the same each time. */
async function countWaiting({ platform }: TestService): Promise<number> {
  const [row] = await platform.deps.db.$queryRaw<{ waiting: number }[]>`
    SELECT count(*)::int AS waiting FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return row?.waiting ?? 0
}

const post = (id: string, query: string, text = 'Hello') =>
  call(service.url, 'POST', `/v1/sessions/${id}/messages${query}`, textMessage(text))
const streamed = (id: string, text = 'Hello') =>
  openStream(service.url, `/v1/sessions/${id}/messages`, { method: 'POST', body: textMessage(text) })

describe('waiting for the answer to a message', () => {
  it('answers 200 with message, turn and output when the turn has ended', async () => {
    const id = await createScriptedSession(service.url, [{ text: 'Done.' }])
    const { status, body } = await post(id, '?wait=60')
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['message', 'output', 'turn'])
    expect(body.message).toMatchObject({ role: 'user', sequence: 1 })
    expect(body.turn).toMatchObject({
      status: 'completed',
      input_message_id: body.message.id,
      iterations: 1,
      error: null,
    })
    expect(body.output).toMatchObject({ role: 'agent', content: [{ type: 'text', text: 'Done.' }] })
  })

  it('answers 200 with the failed turn and no output when the model refuses', async () => {
    const id = await createScriptedSession(service.url, [{ error: { status: 400, message: 'I will not.' } }])
    const { status, body } = await post(id, '?wait=60')
    expect(status).toBe(200)
    expect(body.output).toBeNull()
    expect(body.turn).toMatchObject({ status: 'failed', error_code: 'llm_error', error: expect.stringMatching(/./) })
  })

  it.each(['0', '1'])('answers 202 with message and turn after waiting %s s in vain', async (seconds) => {
    const id = await createScriptedSession(service.url, [{ text: 'Slow.', delay_ms: 2500 }])
    const { status, body } = await post(id, `?wait=${seconds}`)
    expect(status).toBe(202)
    expect(Object.keys(body).sort()).toEqual(['message', 'turn'])
    expect(['queued', 'active']).toContain(body.turn.status)
    const events = await waitUntilIdle(service.url, id)
    expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { turn_id: body.turn.id } })
  })

  it.each(['601', '-1', 'x', '1.5', ''])('refuses ?wait=%s and stores nothing', async (seconds) => {
    const id = await createSession(service.url)
    expectError(await post(id, `?wait=${seconds}`), 400, /^wait: must be/)
    expect(await listEvents(service.url, id)).toEqual([])
  })

  it('accepts the longest wait', async () => {
    const id = await createSession(service.url)
    expect((await post(id, '?wait=600')).status).toBe(200)
  })

  it('ends if the client leaves while its message is being accepted', async () => {
    const { url, platform } = service
    const id = await createScriptedSession(url, [{ text: 'Slow.', delay_ms: 8000 }])
    const followers = countFollowers(platform.deps.events.broker)
    const lock = new pg.Client({ connectionString: service.config.DATABASE_URL })
    await lock.connect()
    await lock.query('BEGIN')
    await lock.query('SELECT id FROM sessions FOR UPDATE')
    const left = new AbortController()
    const { signal } = left
    const request = { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(textMessage('Hello')), signal }
    const answer = fetch(`${url}/v1/sessions/${id}/messages?wait=600`, request)
    await waitFor(async () => (await countWaiting(service)) > 0, 'the message to wait for the session')
    left.abort()
    await expect(answer).rejects.toThrow()
    // Gives the server time to notice.
    await call(url, 'GET', '/health')
    await lock.query('COMMIT')
    await lock.end()
    await waitFor(async () => (await listEvents(url, id)).length > 0, 'the message')
    await waitFor(async () => followers.now() === 0, 'nobody to follow')
    expect((await listEvents(url, id)).at(-1).type).not.toBe('session.idled')
    followers.stop()
    await cancel(url, id)
  })

  it('counts towards the organization’s limit of streams', async () => {
    const sse = { maxStreamsPerOrganization: 2 }
    await withService({ worker: false, sse }, async ({ url, api }) => {
      const id = await createSession(url)
      const waiting = [1, 2].map(() => {
        const left = new AbortController()
        const request = { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(textMessage('Hello')) }
        const answer = fetch(`${url}/v1/sessions/${id}/messages?wait=600`, { ...request, signal: left.signal })
        return { left, answer: answer.then(() => 'answered').catch(() => 'left') }
      })
      const messages = () => listEvents(url, id, '?types=input.message')
      await waitFor(async () => (await messages()).length === 2, 'both messages')
      const refused = await call(url, 'POST', `/v1/sessions/${id}/messages?wait=600`, textMessage('Hello'))
      expectError(refused, 429, 'Too many open streams')
      expectError(await call(url, 'GET', `/v1/sessions/${id}/sse`), 429, 'Too many open streams')
      expect(await messages()).toHaveLength(2)
      for (const { left } of waiting) left.abort()
      expect(await Promise.all(waiting.map(({ answer }) => answer))).toEqual(['left', 'left'])
      const again = async () => openStream(url, `/v1/sessions/${id}/sse`)
      await waitFor(async () => {
        const stream = await again()
        stream.close()
        return stream.status === 200
      }, 'room')
      expect(api.openStreams()).toBeLessThanOrEqual(2)
    })
  })

  it('goes on with the turn when the client leaves', async () => {
    const id = await createScriptedSession(service.url, [{ text: 'Nobody waits.', delay_ms: 1500 }])
    const leaving = new AbortController()
    const gone = fetch(`${service.url}/v1/sessions/${id}/messages?wait=60`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(textMessage('Hello')),
      signal: leaving.signal,
    })
    await waitFor(
      async () => (await listEvents(service.url, id)).some(({ type }) => type === 'reason.started'),
      'a turn',
    )
    leaving.abort()
    await expect(gone).rejects.toThrow()
    const events = await waitUntilIdle(service.url, id)
    expect(events.map(({ type }) => type)).toContain('turn.completed')
  })
})

describe('streaming the answer to a message', () => {
  it('has the events of this turn from input.message to its end, and ends', async () => {
    const id = await createScriptedSession(service.url, [{ text: 'First.', delay_ms: 800 }, { text: 'Second.' }])
    await post(id, '')
    const stream = await streamed(id, 'Next')
    expect(stream.status).toBe(200)
    expect(stream.headers['content-type']).toMatch(/^text\/event-stream/)
    await stream.ended
    expect(stream.frames[0]).toEqual({ event: 'connected', data: { status: 'connected' }, retry: 100 })
    expect(stream.frames.map(({ event }) => event)).not.toContain('disconnecting')
    const events = stream.events()
    expect(events[0]).toMatchObject({ type: 'input.message', data: { message: { content: [{ text: 'Next' }] } } })
    expect(events.at(-1)).toMatchObject({ type: 'turn.completed' })
    const messages = new Set(events.slice(1).map((event) => event.context.input_message_id))
    expect([...messages]).toEqual([events[0].data.message.id])
    const turns = new Set(events.slice(1).map((event) => event.context.turn_id))
    expect([...turns]).toEqual([events.at(-1).data.turn_id])
    const all = await waitUntilIdle(service.url, id)
    const own = all.filter((event: Json) => event.id === events[0].id || turns.has(event.context.turn_id))
    expect(events).toEqual(own.filter((event) => event.type !== 'session.idled'))
  })

  it('lasts until the turn ends, over any number of cycles', async () => {
    await withService({ sse: { cycleMs: 100, heartbeatMs: 200 } }, async ({ url }) => {
      const id = await createScriptedSession(url, [{ text: 'At last.', delay_ms: 1500 }])
      const stream = await openStream(url, `/v1/sessions/${id}/messages`, {
        method: 'POST',
        body: textMessage('Hello'),
      })
      expect(await stream.ended).toBe('whole')
      expect(stream.frames.at(-1)?.event).toBe('turn.completed')
      expect(stream.frames.filter(({ event }) => event === 'disconnecting')).toEqual([])
    })
  })

  it('ends with turn.failed when the turn fails', async () => {
    const stream = await streamed(
      await createScriptedSession(service.url, [{ error: { status: 400, message: 'No.' } }]),
    )
    await stream.ended
    expect(stream.events().at(-1)).toMatchObject({ type: 'turn.failed', data: { error_code: 'llm_error' } })
  })

  it('changes nothing for the turn when the client leaves', async () => {
    const id = await createScriptedSession(service.url, [{ text: 'a b c d e f g h', tokens_per_second: 10 }])
    const stream = await streamed(id)
    await stream.until((frame) => frame.event === 'output.message.delta')
    stream.close()
    const events = await waitUntilIdle(service.url, id)
    const output = events.find((event) => event.type === 'output.message.completed')
    expect(output.data.message.content).toEqual([{ type: 'text', text: 'a b c d e f g h' }])
    await waitFor(async () => service.api.openStreams() === 0, 'the stream to be closed')
  })

  it('answers an invalid request with an error, not with a stream', async () => {
    const mistakes: [string, unknown, number][] = [
      [await createSession(service.url), { message: { content: [] } }, 400],
      [unknownId('session'), textMessage('x'), 404],
    ]
    for (const [id, body, status] of mistakes) {
      const headers = { Accept: 'text/event-stream' }
      expectError(await call(service.url, 'POST', `/v1/sessions/${id}/messages`, body, headers), status)
    }
  })

  it('accepts no message when there are too many streams on the session', async () => {
    const id = await createSession(service.url)
    const streams = await Promise.all(
      Array.from({ length: 12 }, () => openStream(service.url, `/v1/sessions/${id}/sse`)),
    )
    const path = `/v1/sessions/${id}/messages`
    const refused = await call(service.url, 'POST', path, textMessage('x'), { Accept: 'text/event-stream' })
    for (const stream of streams) stream.close()
    expectError(refused, 429, 'Too many open streams on this session')
    expect(await listEvents(service.url, id)).toEqual([])
  })
})
