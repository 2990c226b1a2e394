import { Redis } from 'ioredis'
import { createEventBroker } from '../../../domain/events/live/event-broker.ts'
import { type LiveEntry, readRelayFields, relayIndex, relayKey } from '../../../domain/events/live/live-entry.ts'
import { newUuid } from '../../../domain/kit/ids.ts'
import { createLog } from '../../../platform/log.ts'
import { redisConnector } from '../../../platform/redis.ts'
import type { PrismaClient } from '../../../prisma/generated/client.ts'
import { PATIENCE_MS, waitFor } from '../../support/http.ts'

const HOUR_MS = 3_600_000

/** Options of a broker. `answer` delays the record's answers until it resolves. */
type BrokerOptions = { checkMs?: number; checkWithoutRedisMs?: number; answer?: Promise<void>; prefix?: string }

/** Check intervals so long that the broker checks the record only when Redis (re)connects. */
const NO_CHECKS = { checkMs: HOUR_MS, checkWithoutRedisMs: HOUR_MS }

/**
 * Starts a broker on the real Redis. Its checks of the record are collected in `looks` and answered from `recorded`.
 */
function startBroker(
  recorded: Map<string, number>,
  { checkMs = 20, checkWithoutRedisMs = 10, answer, prefix = `broker-${newUuid()}` }: BrokerOptions = {},
) {
  const looks: string[][] = []
  const db = {
    $queryRaw: async (_sql: TemplateStringsArray, ids: string[]) => {
      looks.push(ids)
      await answer
      return ids.flatMap((id) => (recorded.has(id) ? [{ id, last: recorded.get(id) }] : []))
    },
  } as unknown as PrismaClient
  const log = createLog('silent', 'broker')
  const connector = redisConnector({ REDIS_URL: process.env.REDIS_URL ?? '' })
  const readers = connector.connectReaders(log, 1) as [Redis]
  const client = connector.connect(log) as Redis
  clients.push(client)
  const broker = createEventBroker({ client, readers, db, log, prefix, checkMs, checkWithoutRedisMs })
  return { broker, client, reader: readers[0], looks, prefix }
}

const clients: Redis[] = []
afterAll(() => {
  for (const client of clients) client.disconnect()
})

/** Returns entries of one turn of the session, in the order of their types. */
function entriesOf(sessionId: string, ...types: string[]): LiveEntry[] {
  const turnId = newUuid()
  return types.map((type, index) => ({
    sessionId,
    turnId,
    sequence: index + 1,
    type,
    id: `event_${index}`,
    line: '{}',
  }))
}

const immediate = () => new Promise((resolve) => setImmediate(resolve))

describe('the broker', () => {
  it('wakes only subscribers that are behind the record', async () => {
    const [behind, current, gone] = [newUuid(), newUuid(), newUuid()]
    const { broker, looks } = startBroker(
      new Map([
        [behind, 5],
        [current, 5],
      ]),
    )
    const inboxes = {
      behind: broker.subscribe(behind, () => 4),
      current: broker.subscribe(current, () => 5),
      gone: broker.subscribe(gone, () => 5),
    }
    const { signal } = new AbortController()
    await Promise.all([inboxes.behind.wait(signal), inboxes.gone.wait(signal)])
    const seen = looks.length
    await waitFor(async () => looks.length > seen + 1, 'another look')
    expect(inboxes.behind.take().missed).toBe(true)
    expect(inboxes.gone.take().missed).toBe(true)
    expect(inboxes.current.take()).toEqual({ entries: [], missed: false })
    await broker.close()
  })

  it('checks the record more often while Redis is away', async () => {
    const { broker, reader, looks } = startBroker(new Map(), { checkMs: HOUR_MS })
    broker.subscribe(newUuid(), () => 0)
    await waitFor(async () => reader.status === 'ready', 'Redis')
    reader.disconnect()
    const seen = looks.length
    await waitFor(async () => looks.length > seen + 5, 'more looks')
    await broker.close()
  })

  it('checks the record as soon as Redis is back', async () => {
    const { broker, reader, looks } = startBroker(new Map(), NO_CHECKS)
    broker.subscribe(newUuid(), () => 0)
    for (let connection = 1; connection <= 3; connection++) {
      await waitFor(async () => looks.length === connection, `look ${connection}`)
      reader.disconnect(true)
    }
    await broker.close()
  })

  it('keeps checking the record when the clock is set back', async () => {
    const { broker, looks } = startBroker(new Map())
    broker.subscribe(newUuid(), () => 0)
    await waitFor(async () => looks.length > 0, 'a look')
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => 0)
    const seen = looks.length
    await new Promise((resolve) => setTimeout(resolve, 500))
    clock.mockRestore()
    expect(looks.length).toBeGreaterThan(seen)
    await broker.close()
  })

  it('reads the live stream while the record does not answer', async () => {
    const { broker, reader, prefix } = startBroker(new Map(), { answer: new Promise(() => {}) })
    const session = newUuid()
    const inbox = broker.subscribe(session, () => 0)
    await waitFor(async () => reader.status === 'ready', 'Redis')
    const other = new Redis(process.env.REDIS_URL ?? '')
    await waitFor(async () => {
      await other.xadd(
        relayKey(prefix, relayIndex(session)),
        '*',
        session,
        newUuid(),
        '1',
        'turn.started',
        'event_1',
        '{}',
      )
      return inbox.take().entries.length > 0
    }, 'an entry')
    await Promise.all([broker.close(), other.quit()])
  })

  it('holds a megabyte of unread events, however many were read before', async () => {
    const session = newUuid()
    const { broker, looks, prefix } = startBroker(new Map([[session, 0]]), NO_CHECKS)
    const inbox = broker.subscribe(session, () => 0)
    await waitFor(async () => looks.length > 0, 'the broker to read')
    const other = new Redis(process.env.REDIS_URL ?? '')
    const ring = (sequence: number, characters: number) =>
      other.xadd(
        relayKey(prefix, relayIndex(session)),
        ...['*', session, newUuid(), `${sequence}`, 'turn.started', 'event_1', 'x'.repeat(characters)],
      )
    const signal = AbortSignal.timeout(PATIENCE_MS)
    for (let sequence = 1; sequence <= 48; sequence++) {
      await ring(sequence, 64 * 1024)
      await inbox.wait(signal)
      expect(inbox.take()).toMatchObject({ entries: [{ sequence }], missed: false })
    }
    await ring(49, 1024 * 1024 + 1)
    await inbox.wait(signal)
    expect(inbox.take()).toEqual({ entries: [], missed: true })
    await Promise.all([broker.close(), other.quit()])
  })

  it('gives long lines to readers of its own process only, and half a megabyte of them at a time', async () => {
    const session = newUuid()
    const own = startBroker(new Map([[session, 0]]), NO_CHECKS)
    const inbox = own.broker.subscribe(session, () => 0)
    await waitFor(async () => own.client.status === 'ready', 'Redis')
    expect([own.broker.isFollowed(session), own.broker.isFollowed(newUuid())]).toEqual([true, false])
    const long = 'x'.repeat(300 * 1024)
    const entries = entriesOf(session, 'llm.generation', 'llm.generation', 'turn.completed')
    const lines = (given: LiveEntry[]) => given.map(({ line }) => line.length)
    const filled = entries.map((entry, index) => ({ ...entry, line: index < 2 ? long : '{}' }))
    for (let round = 0; round < 2; round++) {
      own.broker.publish(filled)
      await immediate()
      const { entries: given, missed } = inbox.take()
      expect([lines(given), missed]).toEqual([[long.length, 0, 2], false])
    }
    const key = relayKey(own.prefix, relayIndex(session))
    await waitFor(async () => (await own.client.xlen(key)) === 2, 'Redis')
    const [sent] = (await own.client.xrange(key, '-', '+')) as [string, string[]][]
    expect(lines([...readRelayFields(sent?.[1] ?? [])])).toEqual([0, 0, 2])
    await own.broker.close()
  })

  it('gives what its own process publishes to its subscribers at once, without Redis', async () => {
    const { broker, client, reader } = startBroker(new Map(), NO_CHECKS)
    client.disconnect()
    reader.disconnect()
    const [session, other] = [newUuid(), newUuid()]
    const inbox = broker.subscribe(session, () => 0)
    const first = entriesOf(session, 'turn.started', 'reason.started')
    const second = entriesOf(session, 'turn.completed')
    broker.publish(first)
    broker.publish(entriesOf(other, 'turn.started'))
    broker.publish(second)
    await immediate()
    expect(inbox.take()).toEqual({ entries: [...first, ...second], missed: false })
    await broker.close()
  })

  it('reports the end of a turn only when the attempt that published it has gone on', async () => {
    const { broker } = startBroker(new Map(), NO_CHECKS)
    const [end] = entriesOf(newUuid(), 'turn.completed')
    let ends = 0
    const unwatch = broker.watchTurn(end?.turnId ?? '', () => ends++)
    broker.publish(end ? [end] : [])
    expect(ends).toBe(0)
    await immediate()
    expect(ends).toBe(1)
    unwatch()
    await broker.close()
  })

  it('gives entries once to the process that publishes them, and in their order to every other', async () => {
    const own = startBroker(new Map(), NO_CHECKS)
    const other = startBroker(new Map(), { ...NO_CHECKS, prefix: own.prefix })
    const [session, warm] = [newUuid(), newUuid()]
    const warmed = [own, other].map(({ broker }) => broker.subscribe(warm, () => 0))
    for (const [index, { broker }] of [own, other].entries()) {
      // Until each reads what the other publishes.
      await waitFor(async () => {
        broker.publish(entriesOf(warm, 'turn.started'))
        return (warmed[1 - index]?.take().entries.length ?? 0) > 0
      }, 'entries to come over Redis')
    }
    const entries = entriesOf(session, ...Array(50).fill('output.message.delta'), 'turn.completed')
    const inboxes = [own, other].map(({ broker }) => broker.subscribe(session, () => 0))
    const ended: number[] = []
    const turnId = entries[0]?.turnId ?? ''
    for (const [index, { broker }] of [own, other].entries()) broker.watchTurn(turnId, () => ended.push(index))
    for (const entry of entries) own.broker.publish([entry])
    const received: LiveEntry[] = []
    await waitFor(async () => received.push(...(inboxes[1]?.take().entries ?? [])) === entries.length, 'all entries')
    expect(received).toEqual(entries)
    // What the other one publishes comes to the first after all of its own.
    const [after] = entriesOf(session, 'session.idled')
    other.broker.publish(after ? [after] : [])
    const held: LiveEntry[] = []
    await waitFor(async () => held.push(...(inboxes[0]?.take().entries ?? [])) > entries.length, 'the last entry')
    expect(held).toEqual([...entries, after])
    expect(ended.sort()).toEqual([0, 1])
    await Promise.all([own.broker.close(), other.broker.close()])
  })

  it('forgets a subscriber that has closed, but not the others', async () => {
    const session = newUuid()
    const { broker, looks } = startBroker(new Map([[session, 1]]))
    const first = broker.subscribe(session, () => 1)
    const second = broker.subscribe(session, () => 0)
    first.close()
    first.close()
    await second.wait(new AbortController().signal)
    second.close()
    const seen = looks.length
    // The broker checks the record for the later subscriber and no other.
    const other = newUuid()
    broker.subscribe(other, () => 1)
    await waitFor(async () => looks.length > seen + 2, 'more looks')
    expect(looks.slice(-2)).toEqual([[other], [other]])
    await broker.close()
  })

  it('keeps later subscribers and watches when an earlier one is closed again', async () => {
    const { broker } = startBroker(new Map(), NO_CHECKS)
    const [end] = entriesOf(newUuid(), 'turn.completed') as [LiveEntry]
    let ends = 0
    const watch = () => broker.watchTurn(end.turnId, () => ends++)
    const closes = [broker.subscribe(end.sessionId, () => 0).close, watch()]
    for (const close of closes) close()
    broker.subscribe(end.sessionId, () => 0)
    watch()
    for (const close of closes) close()
    broker.publish([end])
    await immediate()
    expect([broker.isFollowed(end.sessionId), ends]).toEqual([true, 1])
    await broker.close()
  })

  it('stops reading and checking when it is closed', async () => {
    const { broker, reader, looks } = startBroker(new Map())
    broker.subscribe(newUuid(), () => 1)
    await waitFor(async () => looks.length > 0, 'a look')
    await broker.close()
    const seen = looks.length
    await waitFor(async () => reader.status === 'end', 'its connection to end')
    // Another broker's checks show that enough time has passed.
    const clock = startBroker(new Map())
    clock.broker.subscribe(newUuid(), () => 1)
    await waitFor(async () => clock.looks.length > 3, 'the other broker to look')
    expect(looks).toHaveLength(seen)
    await clock.broker.close()
  })
})
