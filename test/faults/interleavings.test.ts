import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { EventType } from '../../contract/events.ts'
import type { Deps } from '../../domain/deps.ts'
import { createEventBroker, type EventBroker } from '../../domain/events/live/event-broker.ts'
import { type LiveEntry, relayIndex, relayKey } from '../../domain/events/live/live-entry.ts'
import type { NewEvent, Writer } from '../../domain/events/log/append.ts'
import { newUuid } from '../../domain/kit/ids.ts'
import { append, createAnswer, createOpenTurn, postUnanswered, toolEvents } from '../support/by-hand.ts'
import { countOf } from '../support/counts.ts'
import { call, type Json, listEvents, textMessage, waitFor } from '../support/http.ts'
import { startApiProcess } from '../support/process.ts'
import { createRandom, type Random } from '../support/random.ts'
import { type RedisSite, startRedisSite } from '../support/redis-site.ts'
import { createResumingClient, type Resume, type ResumingClient } from '../support/resuming-client.ts'
import { seedsOf } from '../support/seeds.ts'
import type { TestService } from '../support/service.ts'
import type { OpenStream } from '../support/stream.ts'

const INTERLEAVINGS = countOf('interleavings')
const AT_ONCE = countOf('interleavingsAtOnce')
/** Longest line published in full. Longer ones are published without their text. */
const RELAY_LINE = 64 * 1024
const HEARTBEAT_MS = 250
const HOUR_MS = 3_600_000
/**
 * Number of rounds. Each has an outage of every kind, then a quiet time in which only the record check finds a lost
 * tail.
 */
const ROUNDS = countOf('outageRounds')
const APPENDS_OF_A_ROUND = 280
const APPENDS_TO_AN_OUTAGE = 35

type Relay = 'delivered' | 'dropped' | 'failed' | 'late' | 'twice'
type Outage = 'restarted' | 'killed' | 'flushed' | 'disconnected'
/** Outage due after a number of appends. Without a kind, it is the quiet time after a round's outages. */
type DueOutage = { after: number; kind?: Outage }
type Filter = { query: string; wants: (type: string) => boolean }
type Session = {
  id: string
  writer: Writer
  log: string[]
  isWriting: boolean
  hasSeenOutage: boolean
  /** Resolves with the first stream. */
  followed: PromiseWithResolvers<void>
  written: Promise<void>
  record?: Promise<Json[]>
}

/** Counts of what happened. A run in which a count stays zero has not tested that case. */
const nothingYet = {
  ...{ appends: 0, events: 0, longLines: 0, messages: 0 },
  ...{ dropped: 0, failed: 0, late: 0, twice: 0, lostTails: 0 },
  ...{ left: 0, since_id: 0, last_event_id: 0, start: 0 },
  ...{ restarted: 0, killed: 0, flushed: 0, disconnected: 0 },
  ...{ duringOutages: 0, live: 0, recorded: 0 },
}
let counts = { ...nothingYet }

let site: RedisSite
let service: TestService
/** URLs of the APIs whose streams are read: one in this process, one in its own. */
let urls: [string, string]
/** Dependencies used to append, each with its own connections. */
let writers: [Deps, Deps]
let failing: EventBroker
beforeAll(async () => {
  const environment = { SSE_HEARTBEAT_INTERVAL_SECS: `${HEARTBEAT_MS / 1000}` }
  site = await startRedisSite({ worker: false, environment, sse: { heartbeatMs: HEARTBEAT_MS } })
  service = site.service
  urls = [service.url, (await startApiProcess(service)).url]
  writers = [service.platform.deps, (await service.startPeer()).platform.deps]
  failing = startFailingBroker(service.platform.deps)
})
afterAll(async () => {
  await failing.close()
  await site.close()
})

const upTo = (random: Random, most: number): number => Math.floor(random() * (most + 1))
const pick = <T>(random: Random, items: readonly [T, ...T[]]): T => items[upTo(random, items.length - 1)] ?? items[0]
const isOneIn = (random: Random, many: number): boolean => random() * many < 1

/** Marks each published line, to show by which way an event arrived. */
const marked = (entries: LiveEntry[]): LiveEntry[] =>
  entries.map((entry) => (entry.line === '' ? entry : { ...entry, line: `${entry.line.slice(0, -1)},"relayed":true}` }))

/** Returns dependencies whose appends are published as `fate` says. */
function withRelay(deps: Deps, fate: Relay): Deps {
  const { broker } = deps.events
  const publish = async (given: LiveEntry[]) => {
    const entries = marked(given)
    if (fate === 'dropped') return
    if (fate === 'failed') return failing.publish(entries)
    if (fate === 'late') await sleep(30)
    if (fate === 'twice') broker.publish(entries)
    broker.publish(entries)
  }
  return { ...deps, events: { ...deps.events, broker: { ...broker, publish } } }
}

/** Starts a broker without readers whose entries Redis does not take. */
function startFailingBroker({ db, log, redis }: Deps): EventBroker {
  const xadd = async () => {
    throw new Error('the relay failed as asked')
  }
  const client: Redis = Object.create(redis.client, { xadd: { value: xadd } })
  const reader = (redis.client as Redis).duplicate({ commandTimeout: undefined })
  reader.on('error', () => {})
  const checks = { checkMs: HOUR_MS, checkWithoutRedisMs: HOUR_MS }
  return createEventBroker({ client, readers: [reader], db, log, prefix: redis.prefix, ...checks })
}

const drawFate = (random: Random): Relay =>
  isOneIn(random, 2) ? 'delivered' : pick(random, ['dropped', 'dropped', 'failed', 'late', 'twice'])

/** Draws events to append at once: deltas of an answer, a restarted answer, or a tool call. */
function createDrafts(random: Random): () => NewEvent[] {
  const answer = createAnswer()
  let calls = 0
  const longText = 'long '.repeat(RELAY_LINE / 4)
  const draft = (): NewEvent[] => {
    if (isOneIn(random, 80)) return [answer.delta(longText), answer.start()]
    if (isOneIn(random, 80)) return toolEvents(`call_${calls++}`, longText)
    if (isOneIn(random, 6)) return toolEvents(`call_${calls++}`, 'short')
    if (isOneIn(random, 8)) return [answer.start()]
    return [answer.delta(`${upTo(random, 1000)} `)]
  }
  return () => Array.from({ length: 1 + upTo(random, 2) }, draft).flat()
}

/** Appends a few times. Sometimes another process posts a message meanwhile. */
async function write({ id, writer, log, followed }: Session, random: Random): Promise<void> {
  const drafts = createDrafts(random)
  // For every other session, publishing fails only in an outage.
  const draw = isOneIn(random, 2) ? drawFate : (): Relay => 'delivered'
  if (isOneIn(random, 2)) await followed.promise
  for (let left = 2 + upTo(random, 2); left > 0; left--) {
    const [events, fate] = [drafts(), draw(random)]
    log.push(`${fate}: ${events.map(({ type }) => type).join(', ')}`)
    await outageBefore
    const appending = append(withRelay(pick(random, writers), fate), writer, events)
    if (isOneIn(random, 8)) await postMessage(id, random)
    const appended = await appending
    countAppend()
    counts.events += appended.length
    counts.longLines += appended.filter((event) => JSON.stringify(event).length > RELAY_LINE).length
    if (fate !== 'delivered') counts[fate]++
    if (left === 1 && (fate === 'dropped' || fate === 'failed')) counts.lostTails++
    await sleep(upTo(random, 60))
  }
}

/** Posts a message with the fate drawn for it, or over the other process, which publishes normally. */
async function postMessage(id: string, random: Random): Promise<void> {
  counts.messages++
  const [deps, fate, text] = [pick(random, writers), drawFate(random), 'And another thing']
  if (isOneIn(random, 2)) await postUnanswered(withRelay(deps, fate), id, text)
  else expect((await call(urls[1], 'POST', `/v1/sessions/${id}/messages`, textMessage(text))).status).toBe(201)
}

const DELTA: EventType = 'output.message.delta'
const FILTERS: readonly [Filter, ...Filter[]] = [
  { query: '', wants: () => true },
  { query: '', wants: () => true },
  { query: `types=${DELTA}&types=input.message`, wants: (type) => type === DELTA || type === 'input.message' },
  { query: `exclude=${DELTA}`, wants: (type) => type !== DELTA },
  { query: `types=${DELTA}&types=tool.completed&exclude=tool.completed`, wants: (type) => type === DELTA },
]
const RESUMES: readonly [Resume, ...Resume[]] = ['since_id', 'since_id', 'last_event_id', 'last_event_id', 'start']

/** Follows the session while it is written, disconnecting and reconnecting at random, and then stays connected. */
async function follow(session: Session, random: Random): Promise<void> {
  const filter = pick(random, FILTERS)
  const client = createResumingClient(session.id, filter.query)
  await sleep(upTo(random, 80))
  let stream: OpenStream | undefined
  for (let isFirst = true; stream === undefined; isFirst = false) {
    const resume = isFirst ? 'start' : pick(random, RESUMES)
    const connecting = connect(client, session, pick(random, urls), resume)
    if (!isFirst) counts[resume]++
    if (isOneIn(random, 6)) await sleep(upTo(random, 5))
    else stream = await connecting
    if (stream) {
      open.set(stream, session)
      session.followed.resolve()
    }
    await sleep(upTo(random, 200))
    if (stream && (!session.isWriting || isOneIn(random, 3))) break
    client.leave()
    if (stream) open.delete(stream)
    counts.left++
    // A client that left while connecting waits here until the connection is answered.
    await connecting
    stream = undefined
    await sleep(upTo(random, 30))
  }
  await expectRecord(session, filter, client, stream)
  client.leave()
  open.delete(stream)
}

async function connect(client: ResumingClient, session: Session, url: string, resume: Resume): Promise<OpenStream> {
  session.log.push(`connect to ${urls.indexOf(url)} ${resume}`)
  const stream = await client.connect(url, resume)
  if (stream.status !== 200) throw new Error(`a stream was refused: ${stream.status}`)
  return stream
}

/** Returns the whole record once it is written. Read once for all clients of the session. */
async function recordOf(session: Session): Promise<Json[]> {
  await session.written
  session.record ??= listEvents(service.url, session.id)
  return session.record
}

/** Expects that the client has the whole record, each event once and nothing after the last. */
async function expectRecord(session: Session, filter: Filter, client: ResumingClient, stream: OpenStream) {
  const record = (await recordOf(session)).filter(({ type }) => filter.wants(type))
  const lastId = record.at(-1)?.id
  if (client.received().at(-1)?.id !== lastId) await stream.until((frame) => frame.id === lastId)
  const heartbeats = () => stream.frames.filter((frame) => frame.comment !== undefined).length
  const before = heartbeats()
  await stream.until(() => heartbeats() > before)
  const received = client.received()
  expect(received.map(({ relayed, ...event }) => event)).toEqual(record)
  const live = received.filter(({ relayed }) => relayed).length
  counts.live += live
  // The other process does not mark the messages that it publishes.
  counts.recorded += received.filter(({ type }) => type !== 'input.message').length - live
}

async function interleave(seed: number, index: number): Promise<void> {
  const random = createRandom(seed + index * 1000)
  const { id, writer } = await createOpenTurn(service.platform.deps)
  const session: Session = {
    ...{ id, writer, log: [], isWriting: true, hasSeenOutage: false },
    ...{ followed: Promise.withResolvers(), written: Promise.resolve() },
  }
  session.written = write(session, random).finally(() => {
    session.isWriting = false
  })
  const followers = Array.from({ length: 1 + upTo(random, 1) }, (_, place) =>
    follow(session, createRandom(seed + index * 1000 + place + 1)),
  )
  try {
    await Promise.all([session.written, ...followers])
  } catch (error) {
    const sentence = `interleaving ${index}, the first of SEED=${seed + index * 1000}: ${session.log.join('; ')}\n${(error as Error).message}`
    throw new Error(sentence, { cause: error })
  }
  if (session.hasSeenOutage) counts.duringOutages++
}

const OUTAGES: Record<Outage, () => Promise<void>> = {
  restarted: async () => {
    await site.stopRedis()
    await site.startRedis()
  },
  killed: async () => {
    await site.loseRedis()
    await site.startRedis()
  },
  flushed: () => site.askRedis((admin) => admin.flushall()),
  disconnected: () => site.askRedis((admin) => admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
}

let outages: DueOutage[] = []
/** Open streams with their sessions. */
const open = new Map<OpenStream, Session>()
/**
 * Latest outage that was due, and the one before it. Nobody appends until the earlier one is over, so that each outage
 * comes in its place.
 */
let outage = Promise.resolve()
let outageBefore = Promise.resolve()

function drawOutages(random: Random): DueOutage[] {
  return Array.from({ length: ROUNDS }, (_, round): DueOutage[] => {
    const kinds: Outage[] = ['restarted', 'killed', 'flushed', 'disconnected']
    return Array.from({ length: kinds.length + 1 }, (_, place) => ({
      after: round * APPENDS_OF_A_ROUND + place * APPENDS_TO_AN_OUTAGE + 1 + upTo(random, APPENDS_TO_AN_OUTAGE - 1),
      kind: kinds.splice(upTo(random, kinds.length - 1), 1)[0],
    }))
  }).flat()
}

function countAppend(): void {
  counts.appends++
  const due = outages[0]
  if (due === undefined || counts.appends < due.after) return
  outages.shift()
  outageBefore = outage
  const { kind } = due
  if (kind !== undefined) outage = outageBefore.then(() => disturb(kind))
}

/** Waits until both the publishing and the reading connection are back. */
async function untilRelayed(): Promise<void> {
  const { deps } = service.platform
  const [session, turn] = [newUuid(), newUuid()]
  const inbox = deps.events.broker.subscribe(session, () => Number.POSITIVE_INFINITY)
  const key = relayKey(deps.redis.prefix, relayIndex(session))
  await waitFor(async () => {
    await deps.redis.client.xadd(key, '*', session, turn, '1', 'turn.started', '', '').catch(() => {})
    return inbox.take().entries.length > 0
  }, 'events to come over Redis')
  inbox.close()
}

async function disturb(kind: Outage): Promise<void> {
  const see = () => {
    for (const session of open.values()) session.hasSeenOutage = true
  }
  see()
  await OUTAGES[kind]()
  await untilRelayed()
  see()
  counts[kind]++
}

describe('clients that reconnect while publishing fails and Redis dies', () => {
  it.each(seedsOf('interleavings'))(`receive the record, in ${INTERLEAVINGS} interleavings (SEED=%i)`, async (seed) => {
    counts = { ...nothingYet }
    outages = drawOutages(createRandom(seed - 1))
    let isOver = false
    let begun = 0
    const lane = async () => {
      for (let index = begun++; index < INTERLEAVINGS && !isOver; index = begun++) await interleave(seed, index)
    }
    const lanes = Array.from({ length: AT_ONCE }, lane)
    try {
      await Promise.all(lanes)
      await outage
    } finally {
      isOver = true
      await Promise.allSettled([...lanes, outage])
      process.stdout.write(`interleavings of seed ${seed}: ${JSON.stringify(counts)}\n`)
    }
    for (const [what, count] of Object.entries(counts))
      expect({ what, happened: count > 0 }).toEqual({ what, happened: true })
    const { restarted, killed, flushed, disconnected, duringOutages, live, recorded } = counts
    expect([restarted, killed, flushed, disconnected]).toEqual([ROUNDS, ROUNDS, ROUNDS, ROUNDS])
    expect(duringOutages).toBeGreaterThanOrEqual(INTERLEAVINGS / 2)
    // About a third arrives live, and less on a busy machine.
    expect(Math.min(live, recorded)).toBeGreaterThan(INTERLEAVINGS / 4)
  })
})
