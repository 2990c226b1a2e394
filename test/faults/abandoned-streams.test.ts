import { type EventEmitter, getEventListeners, once } from 'node:events'
import { connect, Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Deps } from '../../domain/deps.ts'
import { createSession } from '../../domain/sessions/create.ts'
import { ANYBODY, append, createAnswer, createOpenTurn } from '../support/by-hand.ts'
import { countOf } from '../support/counts.ts'
import { leastLiveBytes, toMegabytes } from '../support/heap.ts'
import { waitFor } from '../support/http.ts'
import { createRandom, type Random } from '../support/random.ts'
import { head } from '../support/raw.ts'
import { seedsOf } from '../support/seeds.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'

/** Number of clients that leave after the `connected` frame, without the clients that leave half-way. */
const ABANDONED = countOf('abandonedStreams')
const WARM_UP = countOf('abandonedToWarmUp')
const MAX_WARM_UPS = 10
const AT_ONCE = 50
const REPLAYED_EVENTS = 300
/** Text of a replay. A client that leaves before this much of it leaves in the middle. */
const REPLAY_BYTES = 60_000
/** Two hundred bytes for each client of a soak run. */
const MAX_GROWTH_BYTES = 2 * 1024 * 1024
const LOOKS = 30
const BETWEEN_LOOKS_MS = 100

/** Moment at which a client leaves, with its percentage of the clients. */
const MOMENTS = { in_the_head: 5, after_the_head: 5, connected: 50, in_a_new_session: 20, in_replay: 10, live: 10 }
type Moment = keyof typeof MOMENTS
const HALF_WAY: Moment[] = ['in_the_head', 'after_the_head']
const TABLE = Object.entries(MOMENTS).flatMap(([moment, percent]) => Array<Moment>(percent).fill(moment as Moment))
const drawMoment = (random: Random): Moment => TABLE[Math.floor(TABLE.length * random())] ?? 'connected'
type Lane = { live: OpenTurn; lastId: string; replayed: OpenTurn; random: Random }
type OpenTurn = Awaited<ReturnType<typeof createOpenTurn>>

const counts: Partial<Record<Moment, number>> = {}
let connected = 0
let service: TestService
let deps: Deps
let lanes: Lane[]
/** Objects that the service creates at its start and keeps as long as it runs. */
let kept: { collections: { size: number }[]; controllers: AbortController[]; emitters: EventEmitter[] }
beforeAll(async () => {
  const [maps, sets, aborts] = [watchNew('Map'), watchNew('Set'), watchNew('AbortController')]
  const listens = jest.spyOn(Server.prototype, 'listen')
  const connects = jest.spyOn(Redis.prototype, 'connect')
  service = await startService({ worker: false })
  kept = {
    collections: [...maps.end(), ...sets.end()],
    controllers: aborts.end(),
    // A client that connects again is there once.
    emitters: [...new Set([process, ...listens.mock.contexts, ...connects.mock.contexts])],
  }
  listens.mockRestore()
  connects.mockRestore()
  deps = service.platform.deps
  lanes = []
  const replayed = await createReplayed()
  for (let lane = 0; lane < AT_ONCE; lane++) lanes.push(await createLane(lane, replayed))
  // The service's own are connected by now, unlike one of an earlier file that is still closing.
  kept.emitters = kept.emitters.filter((emitter) => !(emitter instanceof Redis) || emitter.status === 'ready')
})
afterAll(() => service.stop())

type Watched = { Map: Map<unknown, unknown>; Set: Set<unknown>; AbortController: AbortController }

/** Collects the instances of a global class until `end`. */
function watchNew<Name extends keyof Watched>(name: Name): { end(): Watched[Name][] } {
  const globals = globalThis as unknown as Record<Name, new (...args: never[]) => Watched[Name]>
  const original = globals[name]
  const made: Watched[Name][] = []
  globals[name] = new Proxy(original, {
    construct: (target, args, newTarget) => {
      const one = Reflect.construct(target, args, newTarget)
      made.push(one)
      return one
    },
  })
  return {
    end: () => {
      globals[name] = original
      return made
    },
  }
}

/** Creates a turn whose events are only read. */
async function createReplayed(): Promise<OpenTurn> {
  const replayed = await createOpenTurn(deps)
  const answer = createAnswer()
  const words = Array.from({ length: REPLAYED_EVENTS }, () => answer.delta('word '))
  await append(deps, replayed.writer, words)
  return replayed
}

async function createLane(lane: number, replayed: OpenTurn): Promise<Lane> {
  const live = await createOpenTurn(deps)
  const [first] = await append(deps, live.writer, [createAnswer().delta('word ')])
  return { live, lastId: first?.id ?? '', replayed, random: createRandom(lane) }
}

/** Reads until the text is enough. Rejects if the server ends the stream first. */
function readUntil(socket: Socket, isEnough: (text: string) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    const read = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      if (!isEnough(text)) return
      socket.off('data', read)
      socket.off('close', fail)
      resolve()
    }
    const fail = () => reject(new Error(`the server ended the stream: ${text.slice(0, 500)}`))
    socket.on('data', read)
    socket.on('close', fail)
  })
}

/** Acts as a client up to `moment`, at which it leaves. */
async function visit(socket: Socket, moment: Moment, lane: Lane): Promise<void> {
  const { live, lastId, replayed, random } = lane
  const id =
    moment === 'in_replay'
      ? replayed.id
      : moment === 'in_a_new_session'
        ? (await createSession(deps, ANYBODY, {})).id
        : live.id
  const query = id === live.id ? `?since_id=${lastId}` : ''
  const request = head('GET', `/v1/sessions/${id}/sse${query}`)
  if (moment === 'in_the_head') return void socket.write(request.slice(0, Math.floor(random() * request.length)))
  socket.write(request)
  if (moment === 'after_the_head') return
  await readUntil(socket, (text) => text.includes('event: connected'))
  if (moment === 'connected' || moment === 'in_a_new_session') return
  const enough = random() * REPLAY_BYTES
  if (moment === 'in_replay') return readUntil(socket, (text) => text.length > enough)
  const connected = readUntil(socket, (text) => text.includes('id: event_'))
  const [event] = await append(deps, live.writer, [createAnswer().delta('news ')])
  await connected
  lane.lastId = event?.id ?? ''
}

async function abandon(lane: Lane): Promise<void> {
  const { random } = lane
  const moment = drawMoment(random)
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  await visit(socket, moment, lane)
  const closed = once(socket, 'close')
  // Some close the connection properly, others reset it.
  if (random() < 0.5) socket.destroy()
  else socket.resetAndDestroy()
  await closed
  counts[moment] = (counts[moment] ?? 0) + 1
  if (!HALF_WAY.includes(moment)) connected++
}

async function abandonMany(many: number): Promise<void> {
  const enough = connected + many
  await Promise.all(
    lanes.map(async (lane) => {
      while (connected < enough) await abandon(lane)
    }),
  )
}

/** Counts the resources that would keep the process from ending, by kind. */
function countResources(): Record<string, number> {
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  return resources
}

/** Counts entries and listeners of each kept object. */
const countKept = () => ({
  entries: kept.collections.map(({ size }) => size),
  abortListeners: kept.controllers.map(({ signal }) => getEventListeners(signal, 'abort').length),
  listeners: kept.emitters.map((emitter) =>
    emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0),
  ),
})

type Kept = ReturnType<typeof countKept>

/** Takes the minimum of many counts, because a timer may be active during one of them. */
async function countLeastKept(): Promise<Kept> {
  let least = countKept()
  for (let look = 0; look < LOOKS; look++) {
    await sleep(BETWEEN_LOOKS_MS)
    const now = countKept()
    const lesser = (kind: keyof Kept) => least[kind].map((count, index) => Math.min(count, now[kind][index] ?? 0))
    least = {
      entries: lesser('entries'),
      abortListeners: lesser('abortListeners'),
      listeners: lesser('listeners'),
    }
  }
  return least
}

/** Returns the counts that are higher than before. Short-lived entries of the first count may be gone. */
function higherCounts(now: Kept, before: Kept): number[] {
  const higher = (kind: keyof Kept) => now[kind].filter((count, index) => count > (before[kind][index] ?? 0))
  return [...higher('entries'), ...higher('abortListeners'), ...higher('listeners')]
}

/**
 * Lets clients come and go, and expects no count to be higher afterwards. A bounded cache may gain an entry at a moment
 * that the warm-up did not have, such as the name of a rare statement: once, while a leak grows with every thousand.
 */
async function expectNoMore(before: Kept): Promise<void> {
  const countAfterMany = async () => {
    await abandonMany(ABANDONED)
    await untilQuiet()
    return countLeastKept()
  }
  const after = await countAfterMany()
  if (higherCounts(after, before).length > 0) expect(higherCounts(await countAfterMany(), after)).toEqual([])
}

async function untilQuiet(atMost: Record<string, number> = {}): Promise<Record<string, number>> {
  await waitFor(async () => service.api.openStreams() === 0, 'all streams to end')
  const kinds = Object.entries(atMost)
  await waitFor(
    async () => {
      const now = countResources()
      return kinds.every(([kind, most]) => (now[kind] ?? 0) <= most)
    },
    `no more to be open than ${JSON.stringify(atMost)}`,
  )
  return countResources()
}

/**
 * Lets clients come and go until memory settles, to leave out what a process loads and compiles for its first clients.
 */
async function warmUp(): Promise<number> {
  let bytes = 0
  for (let round = 0; round < MAX_WARM_UPS; round++) {
    await abandonMany(WARM_UP)
    await untilQuiet()
    const before = bytes
    bytes = await leastLiveBytes()
    if (Math.abs(bytes - before) < MAX_GROWTH_BYTES / 4) return bytes
  }
  throw new Error('memory does not settle')
}

/**
 * Checks the measurement: an open stream changes the counts, and the emitters are the process, the API and two Redis
 * clients.
 */
async function expectKept(before: Kept): Promise<void> {
  expect([before.listeners.length, before.abortListeners.length > 0]).toEqual([4, true])
  const stream = await openStream(service.url, `/v1/sessions/${lanes[0]?.live.id}/sse`)
  expect(countKept().entries).not.toEqual(before.entries)
  stream.close()
  await untilQuiet()
}

describe('clients that connect and go away', () => {
  it.each(seedsOf('abandonedStreams'))(`leave nothing behind, ${ABANDONED} times (SEED=%i)`, async (seed) => {
    for (const [index, lane] of lanes.entries()) lane.random = createRandom(seed + index)
    const bytesBefore = await warmUp()
    const keptBefore = await countLeastKept()
    await expectKept(keptBefore)
    const { TCPSocketWrap = 0, Timeout = 0 } = await untilQuiet()
    await expectNoMore(keptBefore)
    await untilQuiet({ TCPSocketWrap, Timeout })
    const grownBytes = (await leastLiveBytes()) - bytesBefore
    process.stdout.write(`${JSON.stringify(counts)}, live memory grew by ${toMegabytes(grownBytes)}\n`)
    expect(grownBytes).toBeLessThan(MAX_GROWTH_BYTES)
  })
})
