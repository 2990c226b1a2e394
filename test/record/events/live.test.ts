import { setTimeout as sleep } from 'node:timers/promises'
import type { WireEvent } from '../../../contract/events.ts'
import { expandGenerations } from '../../../domain/conversation/expand-generations.ts'
import type { Deps } from '../../../domain/deps.ts'
import { createEventBroker, type EventBroker } from '../../../domain/events/live/event-broker.ts'
import { readRelayFields, relayIndex, relayKey } from '../../../domain/events/live/live-entry.ts'
import type { NewEvent, Writer } from '../../../domain/events/log/append.ts'
import { follow } from '../../../domain/events/read/follow.ts'
import { redisConnector } from '../../../platform/redis.ts'
import type { PrismaClient } from '../../../prisma/generated/client.ts'
import { append, createAnswer, createOpenTurn, toolEvents } from '../../support/by-hand.ts'
import { call, listEvents, waitFor } from '../../support/http.ts'
import { type RedisSite, startRedisSite } from '../../support/redis-site.ts'
import { type OpenStream, openStream } from '../../support/stream.ts'

const HOUR_MS = 3_600_000
/** Tool result just short enough to be published in full. */
const RESULT = 'x'.repeat(60_000)
/** Number of calls whose events exceed an inbox. */
const BURST = 20
const STREAMS = 300
const SESSIONS = 30

let site: RedisSite
let deps: Deps
/** Dependencies that publish as another process does, so that the events come over Redis. */
let elsewhere: Deps
/**
 * The only broker of the streams. Its checks of the record find nothing, so new events arrive over Redis or not at all.
 */
let broker: EventBroker
let ofService: EventBroker
beforeAll(async () => {
  site = await startRedisSite({ worker: false })
  deps = site.service.platform.deps
  const readers = redisConnector(site.service.config).connectReaders(deps.log, 1)
  const db = { $queryRaw: async (_: unknown, ids: string[]) => ids.map((id) => ({ id, last: 0 })) }
  const options = { ...deps.redis, readers, log: deps.log, checkMs: HOUR_MS, checkWithoutRedisMs: HOUR_MS }
  broker = createEventBroker({ ...options, db: db as unknown as PrismaClient })
  ofService = deps.events.broker
  elsewhere = { ...deps, events: { ...deps.events } }
  deps.events.broker = broker
  await untilRelayed(await createOpenTurn(deps), broker)
})
afterAll(async () => {
  await broker.close()
  // Closed with the service. Its timers would otherwise keep Jest's process from ending.
  deps.events.broker = ofService
  await site.close()
})

type Turn = { id: string; writer: Writer }

/** Appends events until the broker delivers one. */
async function untilRelayed({ writer }: Turn, by: EventBroker): Promise<void> {
  const inbox = by.subscribe(writer.sessionId, () => Number.POSITIVE_INFINITY)
  await waitFor(async () => {
    await append(elsewhere, writer, [createAnswer().start()])
    return inbox.take().entries.length > 0
  }, 'events to come over Redis')
  inbox.close()
}

const open = ({ id }: Turn): Promise<OpenStream> => openStream(site.service.url, `/v1/sessions/${id}/sse`)

/** Opens a stream and waits until it has caught up and has received an event over Redis. */
async function openLive(turn: Turn): Promise<OpenStream> {
  const stream = await open(turn)
  await stream.until((frame) => frame.data?.sequence === 1)
  const [event] = await append(elsewhere, turn.writer, [createAnswer().start()])
  await stream.until((frame) => frame.id === event?.id)
  return stream
}

/**
 * Appends more than an inbox holds at once. Resolves when the broker has delivered it to all of the session's inboxes.
 */
async function burst({ writer }: Turn, name: string): Promise<WireEvent | undefined> {
  const inbox = broker.subscribe(writer.sessionId, () => Number.POSITIVE_INFINITY)
  const calls = Array.from({ length: BURST }, (_, index) => toolEvents(`${name}_${index}`, RESULT))
  const events = await append(elsewhere, writer, calls.flat())
  await waitFor(async () => inbox.take().missed, 'the burst to come over Redis')
  inbox.close()
  return events.at(-1)
}

async function expectRecord({ id }: Turn, stream: OpenStream, last: WireEvent | undefined): Promise<void> {
  await stream.until((frame) => frame.id === last?.id || frame.event === 'disconnecting')
  stream.close()
  expect(stream.frames.filter(({ event }) => event === 'disconnecting')).toEqual([])
  expect(stream.events()).toEqual(await listEvents(site.service.url, id))
}

/** Returns dependencies whose record stops answering after `stop`. `asked` resolves at the first query after that. */
function withRecordThatStops() {
  let isStopped = false
  let notify = (_: string) => {}
  const asked = new Promise<string>((resolve) => {
    notify = resolve
  })
  const $queryRaw = (...given: Parameters<typeof deps.db.$queryRaw>) => {
    if (!isStopped) return deps.db.$queryRaw(...given)
    notify('the record was asked')
    return new Promise(() => {})
  }
  const stop = () => {
    isStopped = true
  }
  return {
    deps: { ...deps, db: Object.create(deps.db, { $queryRaw: { value: $queryRaw } }) as PrismaClient },
    asked,
    stop,
  }
}

describe('a published event', () => {
  it('is given exactly as published, without a query to the record', async () => {
    const { writer } = await createOpenTurn(deps)
    const record = withRecordThatStops()
    const left = new AbortController()
    const batches = follow(record.deps, writer.sessionId, 0, { expand: expandGenerations }, left.signal)
    await batches.next()
    record.stop()
    const lines = ['{ "is": "spaced" }', 'not even JSON', '{"last":1.0}']
    const key = relayKey(deps.redis.prefix, relayIndex(writer.sessionId))
    const fields = lines.flatMap((line, index) => [index + 4, 'turn.started', `event_${index}`, line])
    const given = batches.next().then(({ value }) => value)
    // Again and again: a broker whose connection breaks loses entries, and this one has no record to read them from.
    const seen = await waitFor(async () => {
      await deps.redis.client.xadd(key, '*', writer.sessionId, writer.turnId, ...fields)
      return Promise.race([given, record.asked, sleep(1000, undefined)])
    }, 'the entries to come over Redis')
    expect(seen).toMatchObject(lines.map((line) => ({ line })))
    left.abort()
    await batches.return('aborted')
  })

  it('is given to readers in the same process though it has a long conversation, without a query', async () => {
    const { id, writer } = await createOpenTurn(deps)
    const record = withRecordThatStops()
    const left = new AbortController()
    const batches = follow(record.deps, writer.sessionId, 0, { expand: expandGenerations }, left.signal)
    await batches.next()
    record.stop()
    const { body } = await call(site.service.url, 'GET', `/v1/sessions/${id}/messages`)
    const messages = Array.from({ length: 1000 }, () => body.data[0])
    const asking: NewEvent = { type: 'llm.generation', step: 'reason:1', data: { tools: [] }, parts: { messages } }
    const [event] = await append(deps, writer, [asking])
    const line = JSON.stringify(event)
    expect(line.length).toBeGreaterThan(100_000)
    const given = batches.next().then(({ value }) => value)
    expect(await Promise.race([given, record.asked])).toMatchObject([{ line }])
    left.abort()
    await batches.return('aborted')
  })
})

describe('the live stream', () => {
  it('has no text of a line that is too long', async () => {
    const { writer } = await createOpenTurn(deps)
    const answer = createAnswer()
    const events = await append(elsewhere, writer, [answer.start(), answer.delta('long '.repeat(20_000))])
    const newest = async () => {
      const key = relayKey(deps.redis.prefix, relayIndex(writer.sessionId))
      const [[, fields] = ['', []]] = await deps.redis.client.xrevrange(key, '+', '-', 'COUNT', 1)
      return [...readRelayFields(fields)].filter(({ sequence }) => events.some((event) => event.sequence === sequence))
    }
    await waitFor(async () => (await newest()).length === 2, 'the entry')
    expect((await newest()).map(({ id, line }) => ({ id, line }))).toEqual([
      { id: events[0]?.id, line: JSON.stringify(events[0]) },
      { id: events[1]?.id, line: '' },
    ])
  })

  it('ends the streams of a session that is deleted', async () => {
    const turn = await createOpenTurn(deps)
    const stream = await openLive(turn)
    await call(site.service.url, 'DELETE', `/v1/sessions/${turn.id}`)
    await stream.until((frame) => frame.data?.reason === 'session_deleted')
  })
})

describe('more events at once than an inbox holds', () => {
  it('do not cut off a client that reads', async () => {
    const turn = await createOpenTurn(deps)
    const stream = await openLive(turn)
    await expectRecord(turn, stream, await burst(turn, 'burst'))
  })

  it('do not cut off a slow client during its replay', async () => {
    const turn = await createOpenTurn(deps)
    // More than the operating system buffers for a connection.
    for (let index = 0; index < 40; index++)
      await append(elsewhere, turn.writer, toolEvents(`large_${index}`, 'x'.repeat(500_000)))
    const stream = await open(turn)
    stream.pause()
    let last: WireEvent | undefined
    for (let index = 0; index < 10; index++) {
      last = await burst(turn, `burst_${index}`)
      await sleep(50)
    }
    stream.resume()
    await expectRecord(turn, stream, last)
  })
})

describe('streams', () => {
  it(`use no Redis connections of their own, even if there are ${STREAMS}`, async () => {
    const connections = async () => {
      const list = String(await deps.redis.client.call('CLIENT', 'LIST', 'TYPE', 'NORMAL'))
      return list
        .trim()
        .split('\n')
        .map((line) => / cmd=(\S+)/.exec(line)?.[1] ?? '')
    }
    const reading = (commands: string[]) => commands.filter((command) => command === 'xread').length
    // The service and the test have a broker each. The service's may still be looking for its positions.
    const before = await waitFor(async () => {
      const commands = await connections()
      return reading(commands) === 2 && commands
    }, 'both brokers to read')
    const turns = await Promise.all(Array.from({ length: SESSIONS }, () => createOpenTurn(deps)))
    const streams = await Promise.all(
      Array.from({ length: STREAMS }, (_, index) => openLive(turns[index % SESSIONS] as Turn)),
    )
    const during = await connections()
    expect(during).toHaveLength(before.length)
    expect(reading(during)).toBe(2)
    for (const stream of streams) stream.close()
  })
})
