import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Deps } from '../../domain/deps.ts'
import { append, createAnswer, createOpenTurn } from '../support/by-hand.ts'
import { leastLiveBytes, toMegabytes } from '../support/heap.ts'
import { waitFor } from '../support/http.ts'
import { createRandom, type Random } from '../support/random.ts'
import { head } from '../support/raw.ts'
import { startService, type TestService } from '../support/service.ts'

const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
const WARM_UP = 1000
const ABANDONED = 10_000
const AT_ONCE = 50
const REPLAYED_EVENTS = 300
/** A replay's text; a client that leaves within this much of it leaves in its middle. */
const REPLAY_BYTES = 60_000
const MOST_GROWTH_BYTES = 3 * 1024 * 1024

const MOMENTS = ['in_the_head', 'after_the_head', 'connected', 'in_replay', 'live'] as const
type Moment = (typeof MOMENTS)[number]
/** The early moments cost the least, and are where most can go wrong. */
const drawMoment = (random: Random): Moment => MOMENTS[Math.floor(MOMENTS.length * random() ** 3)] ?? 'live'
type Lane = { live: OpenTurn; lastId: string; replayed: OpenTurn; random: Random }
type OpenTurn = Awaited<ReturnType<typeof createOpenTurn>>

const counts: Record<Moment, number> = { in_the_head: 0, after_the_head: 0, connected: 0, in_replay: 0, live: 0 }
let openInboxes = 0
let service: TestService
let deps: Deps
let lanes: Lane[]
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
  countInboxes(deps)
  lanes = await Promise.all(Array.from({ length: AT_ONCE }, createLane))
})
afterAll(() => service.stop())

/** A subscriber of the hub is an inbox that has not been closed. */
function countInboxes({ hub }: Deps): void {
  const subscribe = hub.subscribe
  hub.subscribe = (...args) => {
    const inbox = subscribe(...args)
    const close = inbox.close
    openInboxes++
    inbox.close = () => {
      openInboxes--
      close()
    }
    return inbox
  }
}

async function createLane(_: unknown, lane: number): Promise<Lane> {
  const [live, replayed] = await Promise.all([createOpenTurn(deps), createOpenTurn(deps)])
  const answer = createAnswer()
  const words = () => answer.delta('word ')
  const [first] = await append(deps, live.writer, [words()])
  await append(deps, replayed.writer, Array.from({ length: REPLAYED_EVENTS }, words))
  return { live, lastId: first?.id ?? '', replayed, random: createRandom(SEED + lane) }
}

/** Reads until there is enough; fails when the server ends the stream first. */
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

/** What a client does of `moment` before it goes away. */
async function visit(socket: Socket, moment: Moment, lane: Lane): Promise<void> {
  const { live, lastId, replayed, random } = lane
  const id = moment === 'in_replay' ? replayed.id : live.id
  const query = moment === 'in_replay' ? '' : `?since_id=${lastId}`
  const request = head('GET', `/v1/sessions/${id}/sse${query}`)
  if (moment === 'in_the_head') return void socket.write(request.slice(0, Math.floor(random() * request.length)))
  socket.write(request)
  if (moment === 'after_the_head') return
  await readUntil(socket, (text) => text.includes('event: connected'))
  if (moment === 'connected') return
  const enough = random() * REPLAY_BYTES
  if (moment === 'in_replay') return readUntil(socket, (text) => text.length > enough)
  const told = readUntil(socket, (text) => text.includes('id: event_'))
  const [event] = await append(deps, live.writer, [createAnswer().delta('news ')])
  await told
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
  // Some say that they go, of others only a reset tells.
  if (random() < 0.5) socket.destroy()
  else socket.resetAndDestroy()
  await closed
  counts[moment]++
}

async function abandonMany(many: number): Promise<void> {
  let begun = 0
  await Promise.all(
    lanes.map(async (lane) => {
      while (begun++ < many) await abandon(lane)
    }),
  )
}

/** What would keep a process from ending, by kind. */
function countResources(): Record<string, number> {
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  return resources
}

async function untilQuiet(atMost: Record<string, number> = {}): Promise<Record<string, number>> {
  await waitFor(async () => service.api.openStreams() === 0 && openInboxes === 0, 'all streams to end')
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

describe('clients that connect and go away', () => {
  it(`leave nothing behind, ${ABANDONED} times (TEST_SEED=${SEED})`, async () => {
    await abandonMany(WARM_UP)
    const before = await untilQuiet()
    const bytesBefore = await leastLiveBytes()
    await abandonMany(ABANDONED)
    const { TCPSocketWrap = 0, Timeout = 0 } = before
    await untilQuiet({ TCPSocketWrap, Timeout })
    const grownBytes = (await leastLiveBytes()) - bytesBefore
    process.stdout.write(`${JSON.stringify(counts)}, live memory grew by ${toMegabytes(grownBytes)}\n`)
    expect(grownBytes).toBeLessThan(MOST_GROWTH_BYTES)
    for (const moment of MOMENTS) expect(counts[moment]).toBeGreaterThan(ABANDONED / 20)
  })
})
