import { Redis } from 'ioredis'
import { createEventBroker } from '../../../domain/events/event-broker.ts'
import { relayIndex, relayKey } from '../../../domain/events/live-entry.ts'
import { newUuid } from '../../../domain/ids.ts'
import { createLog } from '../../../platform/log.ts'
import { connectBlockingRedis } from '../../../platform/redis.ts'
import type { PrismaClient } from '../../../prisma/generated/client.ts'
import { PATIENCE_MS, waitFor } from '../../support/http.ts'

const HOUR_MS = 3_600_000

/** Options of a broker. `answer` delays the record's answers until it resolves. */
type BrokerOptions = { checkMs?: number; checkWithoutRedisMs?: number; answer?: Promise<void> }

/** Check intervals so long that the broker checks the record only when Redis (re)connects. */
const NO_CHECKS = { checkMs: HOUR_MS, checkWithoutRedisMs: HOUR_MS }

/**
 * Starts a broker on the real Redis. Its checks of the record are collected in `looks` and answered from `recorded`.
 */
function startBroker(
  recorded: Map<string, number>,
  { checkMs = 20, checkWithoutRedisMs = 10, answer }: BrokerOptions = {},
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
  const reader = connectBlockingRedis(process.env.REDIS_URL ?? '', log)
  const prefix = `broker-${newUuid()}`
  const broker = createEventBroker({ reader, db, log, prefix, checkMs, checkWithoutRedisMs })
  return { broker, reader, looks, prefix }
}

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
