import { setTimeout as sleep } from 'node:timers/promises'
import { append, createOpenTurn, toolEvents } from '../support/by-hand.ts'
import { leastLiveBytes, liveBytes, toMegabytes } from '../support/heap.ts'
import { type Json, listEvents, waitFor } from '../support/http.ts'
import { createResumingClient, type ResumingClient } from '../support/resuming-client.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import type { OpenStream } from '../support/stream.ts'

const SESSIONS = 4
const CLIENTS_OF_A_SESSION = 12
const CLIENTS = SESSIONS * CLIENTS_OF_A_SESSION
/** Tool result just short enough to be published in full. */
const RESULT = 'x'.repeat(60_000)
/** Most bytes that may wait for a client. */
const INBOX_BYTES = 1024 * 1024
/**
 * High limit, because the operating system buffers megabytes for each connection before anything waits in the service.
 */
const MAX_ROUNDS = 1000
/** Number of clients for which the rest of the record is read. */
const RESUMED = 2

const LARGE_EVENTS = 60
const LARGE_BYTES = 500_000
const HUGE_BYTES = 16_000_000
/** Time after the end of a stream at which its unread rest is dropped. */
const FLUSH_MS = 5000
/** Long enough to read a large event from the record on a busy machine. */
const CYCLE_MS = 3000
/** Time after which everything that may be read ahead for a client has been read. */
const PILING_UP_MS = 2000

type Turn = Awaited<ReturnType<typeof createOpenTurn>>
type Unread = { turn: Turn; client: ResumingClient; stream: OpenStream }

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})
afterAll(() => service.stop())

async function openUnread(turn: Turn, url = service.url): Promise<Unread> {
  const client = createResumingClient(turn.id)
  const stream = await client.connect(url, 'start')
  stream.pause()
  return { turn, client, stream }
}

/**
 * Appends to all sessions until the last client has been cut off. Returns the most memory that `measure` found meanwhile.
 */
async function appendUntilCutOff(turns: Turn[], measure = async () => 0): Promise<number> {
  let mostBytes = 0
  for (let round = 0; service.api.openStreams() > 0; round++) {
    if (round === MAX_ROUNDS) throw new Error(`${service.api.openStreams()} streams are still open`)
    const events = [...toolEvents(`call_${round}`, RESULT), ...toolEvents(`other_${round}`, RESULT)]
    await Promise.all(turns.map(({ writer }) => append(service.platform.deps, writer, events)))
    if (round % 20 === 0) mostBytes = Math.max(mostBytes, await measure())
    // Time for the live stream.
    await sleep(20)
  }
  return mostBytes
}

async function mostBytesOf(ms: number): Promise<number> {
  let mostBytes = 0
  for (const until = Date.now() + ms; Date.now() < until; await sleep(400)) mostBytes = Math.max(mostBytes, liveBytes())
  return mostBytes
}

const sizeOf = (events: Json[]): number => events.reduce((size, event) => size + JSON.stringify(event).length, 0)

/** Reads what was in transit, and then the rest on a second stream. Expects the whole record. */
async function expectNothingLost({ turn, client, stream }: Unread): Promise<void> {
  stream.resume()
  await stream.ended
  const record = await listEvents(service.url, turn.id)
  expect(sizeOf(record.slice(client.received().length))).toBeGreaterThan(INBOX_BYTES)
  const rest = await client.connect(service.url, 'since_id')
  await rest.until((frame) => frame.id === record.at(-1).id)
  client.leave()
  expect(client.received()).toEqual(record)
}

describe('a client that does not read', () => {
  it('is cut off when 1 MiB is waiting, and learns the reason when it continues reading', async () => {
    const unread = await openUnread(await createOpenTurn(service.platform.deps))
    await appendUntilCutOff([unread.turn])
    unread.stream.resume()
    await unread.stream.ended
    const reason = { event: 'disconnecting', data: { reason: 'slow_consumer', retry_ms: 100 } }
    expect(unread.stream.frames.at(-1)).toMatchObject(reason)
  })
})

describe('clients that never read', () => {
  it('cost no more than 1 MiB each, and lose nothing', async () => {
    const turns = await Promise.all(Array.from({ length: SESSIONS }, () => createOpenTurn(service.platform.deps)))
    const unread = await Promise.all(
      Array.from({ length: CLIENTS }, (_, index) => openUnread(turns[index % SESSIONS] as Turn)),
    )
    expect(service.api.openStreams()).toBe(CLIENTS)
    const bytesBefore = await leastLiveBytes()
    const grownBytes = (await appendUntilCutOff(turns, leastLiveBytes)) - bytesBefore
    for (const { stream } of unread.slice(RESUMED)) stream.close()
    process.stdout.write(`${CLIENTS} clients that never read: live memory grew by ${toMegabytes(grownBytes)}\n`)
    await Promise.all(unread.slice(0, RESUMED).map(expectNothingLost))
    expect(grownBytes).toBeLessThan(CLIENTS * INBOX_BYTES)
    await waitFor(async () => service.api.openStreams() === 0, 'the second streams to end')
  })
})

describe('a client that is slow in the middle of a large event', () => {
  it('gets the rest of it before the next heartbeat', async () => {
    await withService({ worker: false, sse: { heartbeatMs: 20 } }, async ({ platform, url, api }) => {
      const turn = await createOpenTurn(platform.deps)
      // More than the operating system buffers for a connection.
      for (let call = 0; call < LARGE_EVENTS; call++) {
        await append(platform.deps, turn.writer, toolEvents(`call_${call}`, 'x'.repeat(LARGE_BYTES)))
      }
      const { client, stream } = await openUnread(turn, url)
      await sleep(PILING_UP_MS)
      const record = await listEvents(url, turn.id)
      expect(client.received().length).toBeLessThan(record.length)
      stream.resume()
      await stream.until((frame) => frame.id === record.at(-1).id)
      await stream.until(({ comment }) => comment === 'heartbeat')
      expect(client.received()).toEqual(record)
      client.leave()
      await waitFor(async () => api.openStreams() === 0, 'the stream to end')
    })
  })
})

describe('a client that takes a large event longer than its stream lasts', () => {
  it('receives it whole', async () => {
    await withService({ worker: false, sse: { cycleMs: CYCLE_MS } }, async ({ platform, url }) => {
      const turn = await createOpenTurn(platform.deps)
      // More than the operating system buffers for a connection.
      const [, large] = await append(platform.deps, turn.writer, toolEvents('large', 'x'.repeat(HUGE_BYTES)))
      const { stream } = await openUnread(turn, url)
      await sleep(CYCLE_MS + FLUSH_MS + 1000)
      stream.resume()
      expect(await stream.ended).toBe('whole')
      expect(stream.events().map(({ id }) => id)).toContain(large?.id)
      expect(stream.frames.at(-1)?.data.reason).toBe('connection_cycle')
    })
  })
})

describe('clients that stop reading in a replay', () => {
  it('hold no more than 8 MiB each, however well the record was compressed', async () => {
    const turn = await createOpenTurn(service.platform.deps)
    for (let call = 0; call < LARGE_EVENTS; call++) {
      await append(service.platform.deps, turn.writer, toolEvents(`call_${call}`, 'x'.repeat(LARGE_BYTES)))
    }
    const bytesBefore = await leastLiveBytes()
    const unread = await Promise.all(Array.from({ length: CLIENTS_OF_A_SESSION }, () => openUnread(turn)))
    const most = await mostBytesOf(PILING_UP_MS)
    process.stdout.write(
      `${unread.length} replays that nobody reads: live memory grew by ${toMegabytes(most - bytesBefore)}\n`,
    )
    // The whole record would be 30 MB for each client.
    expect(most - bytesBefore).toBeLessThan(CLIENTS_OF_A_SESSION * 8 * 1024 * 1024)
    const record = await listEvents(service.url, turn.id)
    const [first] = unread
    first?.stream.resume()
    await first?.stream.until((frame) => frame.id === record.at(-1).id)
    expect(first?.client.received()).toEqual(record)
    for (const { stream } of unread) stream.close()
    await waitFor(async () => service.api.openStreams() === 0, 'the streams to end')
  })
})
