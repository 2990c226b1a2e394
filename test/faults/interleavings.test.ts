import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { EventType } from '../../contract/events.ts'
import type { Deps } from '../../domain/deps.ts'
import type { NewEvent, Writer } from '../../domain/events/append.ts'
import { pause } from '../../domain/pause.ts'
import { append, createAnswer, createOpenTurn, postUnanswered, toolEvents } from '../support/by-hand.ts'
import { type Json, listEvents } from '../support/http.ts'
import { startApiProcess } from '../support/process.ts'
import { createRandom, type Random } from '../support/random.ts'
import { type RedisSite, startRedisSite } from '../support/redis-site.ts'
import { createResumingClient, type Resume, type ResumingClient } from '../support/resuming-client.ts'
import type { TestService } from '../support/service.ts'
import type { OpenStream } from '../support/stream.ts'

const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
const INTERLEAVINGS = 1000
const AT_ONCE = 100
/** A line that is longer is published without its text. */
const RELAY_LINE = 64 * 1024
const HEARTBEAT_MS = 250

type Relay = 'told' | 'dropped' | 'failed' | 'late' | 'twice'
type Outage = 'restarted' | 'killed' | 'flushed' | 'disconnected'
type Filter = { query: string; wants: (type: string) => boolean }
type Session = {
  id: string
  writer: Writer
  log: string[]
  isWriting: boolean
  written: Promise<void>
  record?: Promise<Json[]>
}

/** What happened; a test in which something of it did not happen has shown nothing. */
const counts = {
  ...{ appends: 0, events: 0, longLines: 0, messages: 0 },
  ...{ dropped: 0, failed: 0, late: 0, twice: 0, lostTails: 0 },
  ...{ left: 0, since_id: 0, last_event_id: 0, start: 0 },
  ...{ restarted: 0, killed: 0, flushed: 0, disconnected: 0 },
}

let site: RedisSite
let service: TestService
let urls: [string, string]
beforeAll(async () => {
  const environment = { SSE_HEARTBEAT_INTERVAL_SECS: `${HEARTBEAT_MS / 1000}` }
  site = await startRedisSite({ worker: false, environment, sse: { heartbeatMs: HEARTBEAT_MS } })
  service = site.service
  urls = [service.url, (await startApiProcess(service)).url]
})
afterAll(() => site.close())

const upTo = (random: Random, most: number): number => Math.floor(random() * (most + 1))
const pick = <T>(random: Random, items: readonly [T, ...T[]]): T => items[upTo(random, items.length - 1)] ?? items[0]
const isOneIn = (random: Random, many: number): boolean => random() * many < 1

/** Deps of which an append comes to the relay as `fate` says. */
function withRelay(deps: Deps, fate: Relay): Deps {
  const xadd = async (...args: Parameters<Redis['xadd']>) => {
    if (fate === 'dropped') return null
    if (fate === 'failed') throw new Error('the relay failed as asked')
    if (fate === 'late') await sleep(30)
    if (fate === 'twice') await deps.redis.xadd(...args)
    return deps.redis.xadd(...args)
  }
  return { ...deps, redis: Object.create(deps.redis, { xadd: { value: xadd } }) }
}

const drawFate = (random: Random): Relay =>
  random() < 0.65 ? 'told' : pick(random, ['dropped', 'dropped', 'failed', 'late', 'twice'])

/** What is appended at once: pieces of an answer, an answer that starts over, a tool call. */
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

/** Appends a few times, now and then while another process takes a message. */
async function write({ id, writer, log }: Session, random: Random): Promise<void> {
  const drafts = createDrafts(random)
  for (let left = 2 + upTo(random, 2); left > 0; left--) {
    const [events, fate] = [drafts(), drawFate(random)]
    log.push(`${fate}: ${events.map(({ type }) => type).join(', ')}`)
    const appending = append(withRelay(service.platform.deps, fate), writer, events)
    if (isOneIn(random, 8)) {
      counts.messages++
      await postUnanswered(withRelay(service.platform.deps, drawFate(random)), id, 'And another thing')
    }
    const appended = await appending
    counts.appends++
    counts.events += appended.length
    counts.longLines += appended.filter((event) => JSON.stringify(event).length > RELAY_LINE).length
    if (fate !== 'told') counts[fate]++
    if (left === 1 && (fate === 'dropped' || fate === 'failed')) counts.lostTails++
    await sleep(upTo(random, 60))
  }
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

/** Follows the session, goes away and comes back at random as long as there is writing, and then stays. */
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
    await sleep(upTo(random, 200))
    if (stream && (!session.isWriting || isOneIn(random, 3))) break
    client.leave()
    counts.left++
    // Who left before the answer is through with this visit when it has come.
    await connecting
    stream = undefined
    await sleep(upTo(random, 30))
  }
  await expectRecord(session, filter, client, stream)
  client.leave()
}

async function connect(client: ResumingClient, session: Session, url: string, resume: Resume): Promise<OpenStream> {
  session.log.push(`connect to ${urls.indexOf(url)} ${resume}`)
  const stream = await client.connect(url, resume)
  if (stream.status !== 200) throw new Error(`a stream was refused: ${stream.status}`)
  return stream
}

/** The whole of it, once it is written; read once for all who follow it. */
async function recordOf(session: Session): Promise<Json[]> {
  await session.written
  session.record ??= listEvents(service.url, session.id)
  return session.record
}

/** The client has the whole record, each event once, and nothing comes after its last. */
async function expectRecord(session: Session, filter: Filter, client: ResumingClient, stream: OpenStream) {
  const record = (await recordOf(session)).filter(({ type }) => filter.wants(type))
  const lastId = record.at(-1)?.id
  if (client.received().at(-1)?.id !== lastId) await stream.until((frame) => frame.id === lastId)
  const heartbeats = () => stream.frames.filter((frame) => frame.comment !== undefined).length
  const before = heartbeats()
  await stream.until(() => heartbeats() > before)
  expect(client.received()).toEqual(record)
}

async function interleave(index: number): Promise<void> {
  const random = createRandom(SEED + index * 1000)
  const { id, writer } = await createOpenTurn(service.platform.deps)
  const session: Session = { id, writer, log: [], isWriting: true, written: Promise.resolve() }
  session.written = write(session, random).finally(() => {
    session.isWriting = false
  })
  const followers = Array.from({ length: 1 + upTo(random, 1) }, (_, place) =>
    follow(session, createRandom(SEED + index * 1000 + place + 1)),
  )
  try {
    await Promise.all([session.written, ...followers])
  } catch (error) {
    const sentence = `interleaving ${index} of seed ${SEED}: ${session.log.join('; ')}\n${(error as Error).message}`
    throw new Error(sentence, { cause: error })
  }
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

/** Each kind in turn, with quiet between them in which only the look at the record finds a lost tail. */
async function disturb(random: Random, signal: AbortSignal): Promise<void> {
  for (let kinds: Outage[] = []; !signal.aborted; ) {
    await pause(1000 + upTo(random, 7000), signal)
    if (signal.aborted) return
    if (kinds.length === 0) kinds = ['restarted', 'killed', 'flushed', 'disconnected']
    const [kind] = kinds.splice(upTo(random, kinds.length - 1), 1)
    if (kind === undefined) return
    await OUTAGES[kind]()
    counts[kind]++
  }
}

describe('clients that come and go while the relay loses what it is told and Redis dies', () => {
  it(`receive the record, in ${INTERLEAVINGS} interleavings (TEST_SEED=${SEED})`, async () => {
    const done = new AbortController()
    const disturbing = disturb(createRandom(SEED - 1), done.signal)
    let begun = 0
    const lane = async () => {
      for (let index = begun++; index < INTERLEAVINGS && !done.signal.aborted; index = begun++) await interleave(index)
    }
    const lanes = Array.from({ length: AT_ONCE }, lane)
    try {
      await Promise.all(lanes)
    } finally {
      done.abort()
      await Promise.allSettled([...lanes, disturbing])
      process.stdout.write(`interleavings of seed ${SEED}: ${JSON.stringify(counts)}\n`)
    }
    for (const [what, count] of Object.entries(counts))
      expect({ what, happened: count > 0 }).toEqual({ what, happened: true })
  })
})
