import { setTimeout as sleep } from 'node:timers/promises'
import { EventSource } from 'eventsource'
import pg from 'pg'
import { append, createOpenTurn, toolEvents } from '../support/by-hand.ts'
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
import { type TestService, withService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { cancel, MUTE, statusOf, waitForEvent } from '../support/turns.ts'

/** Events that together exceed what the operating system buffers for a connection. */
const LARGE_EVENTS = 60
const LARGE_BYTES = 500_000
/** Time after which everything that may be read ahead for a client has been read. */
const PILING_UP_MS = 3000
/** Limit for a shutdown. Pending answers have four seconds, and a busy machine may need a few more. */
const MAX_CLOSING_MS = 20_000

/** Who waits for a table of this database: the locks of all others, where other tests run, are in that view too. */
const WAITING_SQL = `SELECT FROM pg_locks WHERE NOT granted AND relation = $1::regclass
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

/** Opens a stream of an inactive session without reading its replay. */
async function openUnread({
  url,
  platform,
}: Pick<TestService, 'url' | 'platform'>): Promise<{ id: string; stream: OpenStream }> {
  const { id, writer } = await createOpenTurn(platform.deps)
  for (let name = 0; name < LARGE_EVENTS; name++)
    await append(platform.deps, writer, toolEvents(`call_${name}`, 'x'.repeat(LARGE_BYTES)))
  const stream = await openStream(url, `/v1/sessions/${id}/sse`)
  stream.pause()
  return { id, stream }
}

/** Prevents reads from a table while `work` runs. */
async function withLockedTable(
  { config }: Pick<TestService, 'config'>,
  table: string,
  work: (release: () => Promise<unknown>, untilAsked: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  const locker = new pg.Client({ connectionString: config.DATABASE_URL })
  await locker.connect()
  const untilAsked = () =>
    waitFor(async () => (await locker.query(WAITING_SQL, [table])).rows.length > 0, `somebody to read ${table}`)
  try {
    await locker.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
    await work(() => locker.query('ROLLBACK'), untilAsked)
  } finally {
    await locker.end()
  }
}

describe('a stream that stays open', () => {
  it('has heartbeats, which are comments', async () => {
    await withService({ worker: false, sse: { heartbeatMs: 20 } }, async ({ url }) => {
      const stream = await openStream(url, `/v1/sessions/${await createSession(url)}/sse`)
      await stream.until(() => stream.frames.filter((frame) => frame.comment === 'heartbeat').length >= 3)
      stream.close()
      expect(stream.frames[1]).toEqual({ comment: 'heartbeat' })
    })
  })

  it('is cycled after a time that varies by a fifth, and asked to reconnect at once', async () => {
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
      // Only lifetimes are fractions of a millisecond; other tests set timers meanwhile.
      .filter((ms) => ms >= 0.8 * cycleMs && ms <= 1.2 * cycleMs && !Number.isInteger(ms))
    timers.mockRestore()
    // Twelve lifetimes are spread over 40% of the cycle. All within 10% happens once in half a million runs.
    expect(new Set(lifetimes).size).toBeGreaterThanOrEqual(12)
    expect(Math.max(...lifetimes) - Math.min(...lifetimes)).toBeGreaterThan(0.1 * cycleMs)
  })

  it.concurrent('is told when the server shuts down, which does not wait for it', async () => {
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
        // A stream that does not end by itself would be `torn`.
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
  it.concurrent('is told when the server shuts down, which does not wait for it', async () => {
    await withService({ worker: false }, async (service) => {
      const { url, api } = await service.startPeer()
      const id = await createSession(url)
      await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
      await withLockedTable(service, 'events', async () => {
        const stream = await openStream(url, `/v1/sessions/${id}/sse`)
        await stream.until((frame) => frame.event === 'connected')
        await api.close()
        await stream.ended
        expect(stream.frames.map(({ event, data }) => [event, data?.reason])).toEqual([
          ['connected', undefined],
          ['disconnecting', 'shutdown'],
        ])
        expect(api.openStreams()).toBe(0)
      })
    })
  })

  it.concurrent('that opens while the server shuts down is notified at once', async () => {
    await withService({ worker: false }, async (service) => {
      const { url, api } = await service.startPeer()
      const id = await createSession(url)
      await withLockedTable(service, 'sessions', async (release, untilAsked) => {
        const opening = openStream(url, `/v1/sessions/${id}/sse`)
        await untilAsked()
        const closed = api.close()
        await release()
        const stream = await opening
        expect(await stream.ended).toBe('whole')
        expect(stream.frames.map(({ event, data }) => [event, data?.reason])).toEqual([
          ['connected', undefined],
          ['disconnecting', 'shutdown'],
        ])
        await closed
      })
    })
  })
})

describe('an endless answer, and an unread one', () => {
  it.concurrent('do not keep the server from shutting down', async () => {
    await withService({ worker: false }, async (service) => {
      const peer = await service.startPeer()
      const { stream: unread } = await openUnread(peer)
      const id = await createSession(peer.url)
      await withLockedTable(service, 'events', async (_release, untilAsked) => {
        const answer = call(peer.url, 'GET', `/v1/sessions/${id}/events`).then(
          () => 'answered',
          () => 'broken off',
        )
        await untilAsked()
        const closed = peer.api.close().then(() => 'closed')
        expect(await Promise.race([closed, sleep(MAX_CLOSING_MS, 'still open', { ref: false })])).toBe('closed')
        expect(await answer).toBe('broken off')
      })
      unread.close()
    })
  })
})

describe('a client that takes nothing of what it asked for', () => {
  it.concurrent('becomes a slow consumer after a while, and learns it when it continues reading', async () => {
    await withService({ worker: false, sse: { stalledMs: 3000, flushMs: 600_000 } }, async (service) => {
      const { stream } = await openUnread(service)
      await waitFor(async () => service.api.openStreams() === 0, 'the client to be given up')
      stream.resume()
      expect(await stream.ended).toBe('whole')
      expect(stream.frames.at(-1)).toMatchObject({ event: 'disconnecting', data: { reason: 'slow_consumer' } })
    })
  })

  it.concurrent('loses its connection if it does not even read the end', async () => {
    await withService({ worker: false, sse: { stalledMs: 3000, flushMs: 3000 } }, async (service) => {
      const { stream } = await openUnread(service)
      await waitFor(async () => service.api.openStreams() === 0, 'the client to be given up')
      await sleep(5000)
      stream.resume()
      expect(await stream.ended).toBe('torn')
      expect(stream.frames.map(({ event }) => event)).not.toContain('disconnecting')
    })
  })
})

describe('a client that waits for an answer', () => {
  it.concurrent('gets the events so far when the server shuts down, which does not wait for the turn', async () => {
    await withService({}, async (service) => {
      const { url, api } = await service.startPeer()
      const id = await createScriptedSession(url, [MUTE])
      const answer = call(url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('Hello'))
      await waitForEvent(url, id, 'turn.started')
      await api.close()
      expect(await answer).toMatchObject({ status: 202, body: { turn: { status: 'active' } } })
      expect(await statusOf(service.url, id)).toBe('active')
      await cancel(service.url, id)
    })
  })
})

describe('a session that is deleted in the middle of a replay', () => {
  it.concurrent('ends its stream with complete events and a reason', async () => {
    await withService({ worker: false }, async (service) => {
      const { id, stream } = await openUnread(service)
      const record = await listEvents(service.url, id)
      await sleep(PILING_UP_MS)
      expect((await call(service.url, 'DELETE', `/v1/sessions/${id}`)).status).toBe(204)
      stream.resume()
      expect(await stream.ended).toBe('whole')
      const replayed = stream.events()
      expect(replayed.length).toBeLessThan(record.length)
      expect(stream.frames.map(({ event, data }) => data?.reason ?? event)).toEqual([
        'connected',
        ...record.slice(0, replayed.length).map(({ type }) => type),
        'session_deleted',
      ])
      expect(replayed).toEqual(record.slice(0, replayed.length))
    })
  })
})

describe('a standard EventSource', () => {
  it.concurrent('follows a session over connection cycles, each event once and in order', async () => {
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
