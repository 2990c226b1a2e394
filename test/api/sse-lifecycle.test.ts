import { EventSource } from 'eventsource'
import pg from 'pg'
import {
  call,
  createScriptedSession,
  createSession,
  type Json,
  listEvents,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { withService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { cancel, MUTE, statusOf } from '../support/turns.ts'

const { jest } = import.meta

describe('a stream that stays open', () => {
  it('has heartbeats, which are comments', async () => {
    await withService({ worker: false, sse: { heartbeatMs: 20 } }, async ({ url }) => {
      const stream = await openStream(url, `/v1/sessions/${await createSession(url)}/sse`)
      await stream.until(() => stream.frames.filter((frame) => frame.comment === 'heartbeat').length >= 3)
      stream.close()
      expect(stream.frames[1]).toEqual({ comment: 'heartbeat' })
    })
  })

  it('is cycled after a time that differs by a fifth, and told to come back at once', async () => {
    const cycleMs = 1234
    const timers = jest.spyOn(globalThis, 'setTimeout')
    await withService({ worker: false, sse: { cycleMs } }, async ({ url, api }) => {
      const id = await createSession(url)
      const streams = await Promise.all(Array.from({ length: 12 }, () => openStream(url, `/v1/sessions/${id}/sse`)))
      for (const stream of streams) {
        await stream.ended
        expect(stream.frames.at(-1)).toEqual({
          event: 'disconnecting',
          data: { reason: 'connection_cycle', retry_ms: 100 },
          retry: 100,
        })
      }
      expect(api.openStreams()).toBe(0)
    })
    const lifetimes = timers.mock.calls
      .map(([, ms]) => ms ?? 0)
      .filter((ms) => ms >= 0.8 * cycleMs && ms <= 1.2 * cycleMs)
    timers.mockRestore()
    // Of twelve that are spread over two fifths; all within a tenth is one in half a million.
    expect(new Set(lifetimes).size).toBeGreaterThanOrEqual(12)
    expect(Math.max(...lifetimes) - Math.min(...lifetimes)).toBeGreaterThan(0.1 * cycleMs)
  })

  it('is told when the server shuts down, which does not wait for it', async () => {
    await withService({}, async (service) => {
      const { url, api } = await service.startPeer()
      const sessions = await Promise.all([createSession(url), createSession(url)])
      const streams = await Promise.all(sessions.map((id) => openStream(url, `/v1/sessions/${id}/sse`)))
      const busy = await createScriptedSession(url, [MUTE])
      const turn = await openStream(url, `/v1/sessions/${busy}/messages`, {
        method: 'POST',
        body: textMessage('Hello'),
      })
      await turn.until((frame) => frame.event === 'input.message')
      await api.close()
      for (const stream of [...streams, turn]) {
        // What does not end by itself is torn down.
        expect(await stream.ended).toBe('whole')
        expect(stream.frames.at(-1)).toMatchObject({
          event: 'disconnecting',
          data: { reason: 'shutdown', retry_ms: 100 },
        })
      }
      expect(api.openStreams()).toBe(0)
      await cancel(service.url, busy)
    })
  })
})

describe('a stream that waits for Postgres', () => {
  it('is told when the server shuts down, which does not wait for it', async () => {
    await withService({ worker: false }, async (service) => {
      const { url, api } = await service.startPeer()
      const id = await createSession(url)
      await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
      const locker = new pg.Client({ connectionString: service.config.DATABASE_URL })
      await locker.connect()
      try {
        await locker.query('BEGIN; LOCK TABLE events IN ACCESS EXCLUSIVE MODE')
        const stream = await openStream(url, `/v1/sessions/${id}/sse`)
        await stream.until((frame) => frame.event === 'connected')
        await api.close()
        await stream.ended
        expect(stream.frames.map(({ event, data }) => [event, data?.reason])).toEqual([
          ['connected', undefined],
          ['disconnecting', 'shutdown'],
        ])
        expect(api.openStreams()).toBe(0)
      } finally {
        await locker.end()
      }
    })
  })
})

describe('a client that waits for an answer', () => {
  it('gets what there is when the server shuts down, which does not wait for the turn', async () => {
    await withService({}, async (service) => {
      const { url, api } = await service.startPeer()
      const id = await createScriptedSession(url, [MUTE])
      const answer = call(url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('Hello'))
      await waitFor(async () => (await listEvents(url, id)).length > 1, 'the turn to begin')
      await api.close()
      expect(await answer).toMatchObject({ status: 202, body: { turn: { status: 'active' } } })
      expect(await statusOf(service.url, id)).toBe('active')
      await cancel(service.url, id)
    })
  })
})

describe('a standard EventSource', () => {
  it('follows a session over connection cycles, each event once and in order', async () => {
    await withService({ sse: { cycleMs: 400 } }, async ({ url }) => {
      const steps = Array.from({ length: 4 }, () => ({ text: 'one two three four five', tokens_per_second: 10 }))
      const id = await createScriptedSession(url, steps)
      const source = new EventSource(`${url}/v1/sessions/${id}/sse`)
      const seen: Json[] = []
      let cycles = 0
      const types = [
        'input.message',
        'output.message.delta',
        'output.message.completed',
        'turn.completed',
        'session.idled',
      ]
      for (const type of types) source.addEventListener(type, (event) => seen.push(JSON.parse(event.data)))
      source.addEventListener('disconnecting', () => cycles++)
      try {
        for (const _ of steps) await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go on'))
        await waitUntilIdle(url, id)
        const expected = (await listEvents(url, id)).filter(({ type }) => types.includes(type))
        await waitFor(async () => seen.at(-1)?.id === expected.at(-1).id, 'the last event')
        expect(seen).toEqual(expected)
        expect(cycles).toBeGreaterThan(1)
      } finally {
        source.close()
      }
    })
  })
})
