import { EventSource } from 'eventsource'
import { DurableSnapshot } from '../../contract/durable.ts'
import type { TemporalHealth } from '../../domain/upkeep/health/health.ts'
import { call, createScriptedSession, expectError, type Json, waitFor } from '../support/http.ts'
import { startProxy } from '../support/proxy.ts'
import { exchange, head } from '../support/raw.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import { type Frame, type OpenStream, openStream } from '../support/stream.ts'
import { post, waitForEvent } from '../support/turns.ts'

const NONE = { running: 0, failed: 0, ended: 0 }
const QUIET: TemporalHealth = { workers: 1, backlog: { tasks: 0, oldestMs: 0 }, turns: NONE, executions: NONE }
const PATH = '/v1/durable/sse'
const open = (service: { url: string }) => openStream(service.url, PATH)

/** Returns all snapshots so far, each checked against the contract. */
const snapshotsOf = ({ frames }: OpenStream): DurableSnapshot[] =>
  frames.filter(({ event }) => event === 'snapshot').map(({ data }) => DurableSnapshot.strict().parse(data))

const untilHealth = (stream: OpenStream, fits: (health: DurableSnapshot['health']) => boolean, timeoutMs?: number) =>
  stream.until(({ event, data }) => event === 'snapshot' && fits(data.health), timeoutMs)

/** Waits for the snapshot of a service that has a worker and nothing wrong. */
const untilHealthy = (stream: OpenStream) => untilHealth(stream, ({ status }) => status === 'healthy')

/** Counts the reads from Temporal for the streams of one service. */
function countReads({ platform }: Pick<TestService, 'platform'>) {
  const counter = { reads: 0, underWay: 0, mostUnderWay: 0 }
  const { readHealth } = platform.deps.workflows
  platform.deps.workflows.readHealth = async () => {
    counter.reads++
    counter.mostUnderWay = Math.max(counter.mostUnderWay, ++counter.underWay)
    return readHealth().finally(() => counter.underWay--)
  }
  const more = (times: number) => {
    const reads = counter.reads + times
    return waitFor(async () => counter.reads >= reads, 'Temporal to be asked again')
  }
  return { counter, more }
}

/**
 * Expects that nothing is read without streams: pending reads end, and none follows for longer than the read interval.
 */
async function expectQuiet({ counter }: ReturnType<typeof countReads>): Promise<void> {
  await waitFor(async () => counter.underWay === 0, 'the last question')
  const { reads } = counter
  await new Promise((resolve) => setTimeout(resolve, 2500))
  expect(counter.reads).toBe(reads)
}

/** Makes every read from Temporal return at once. */
function answerAtOnce({ platform }: TestService): void {
  platform.deps.workflows.readHealth = async () => QUIET
}

const CONNECTED: Frame = { event: 'connected', data: { status: 'connected' }, retry: 100 }
const disconnecting = (reason: string): Frame => ({
  event: 'disconnecting',
  data: { reason, retry_ms: 100 },
  retry: 100,
})

describe('a monitoring stream', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startService()
  })
  afterAll(() => service.stop())

  it('begins with a snapshot, and has the headers of a stream', async () => {
    const stream = await open(service)
    await untilHealthy(stream)
    stream.close()
    expect(stream.status).toBe(200)
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
    expect(stream.frames[0]).toEqual(CONNECTED)
    expect(stream.frames[1]).toMatchObject({ event: 'snapshot', data: expect.anything() })
    for (const { retry } of stream.frames) expect([100, 200, 400, 500]).toContain(retry)
    const { ts, health } = snapshotsOf(stream).at(-1) ?? {}
    expect(Math.abs(Date.now() - Date.parse(ts ?? ''))).toBeLessThan(3_600_000)
    expect(health).toEqual({
      status: 'healthy',
      reasons: [],
      workers: 1,
      task_queue_backlog: 0,
      turns: { running: 0, failed: 0, retrying: 0, stalled: 0 },
      executions: { running: expect.any(Number), failed: 0 },
    })
  })

  it('sends nothing while nothing changes', async () => {
    const reads = countReads(service)
    const stream = await open(service)
    await untilHealthy(stream)
    const { length } = stream.frames
    await reads.more(3)
    expect(stream.frames).toHaveLength(length)
    stream.close()
  })

  it('shares its reads with the others, and reads stop when all have gone', async () => {
    const reads = countReads(service)
    const streams = await Promise.all([open(service), open(service), open(service)])
    await Promise.all(streams.map(untilHealthy))
    const latest = streams.map((stream) => snapshotsOf(stream).at(-1))
    expect(new Set(latest.map((snapshot) => snapshot?.ts)).size).toBe(1)
    await reads.more(2)
    expect(reads.counter.mostUnderWay).toBe(1)
    for (const stream of streams) stream.close()
    await waitFor(async () => service.api.openStreams() === 0, 'the streams to end')
    await expectQuiet(reads)
  })

  it('counts a turn while it runs', async () => {
    const stream = await open(service)
    await untilHealthy(stream)
    const id = await createScriptedSession(service.url, [{ text: 'la '.repeat(400), tokens_per_second: 8 }])
    await post(service.url, id)
    await untilHealth(stream, ({ turns }) => turns.running === 1)
    await call(service.url, 'POST', `/v1/sessions/${id}/cancel`)
    await waitFor(async () => snapshotsOf(stream).at(-1)?.health.turns.running === 0, 'the turn to have ended')
    expect(snapshotsOf(stream).at(-1)?.health).toMatchObject({ status: 'healthy', turns: { failed: 0 } })
    stream.close()
  })

  it('counts a turn while its model is asked again', async () => {
    const stream = await open(service)
    await untilHealthy(stream)
    const error = { status: 503, message: 'no', retry_after_ms: 60_000 }
    const id = await createScriptedSession(service.url, [{ error }])
    await post(service.url, id)
    await untilHealth(stream, ({ turns }) => turns.retrying === 1)
    await call(service.url, 'POST', `/v1/sessions/${id}/cancel`)
    await waitFor(async () => snapshotsOf(stream).at(-1)?.health.turns.retrying === 0, 'the turn to have ended')
    stream.close()
  })

  it('is there for GET and HEAD only, and HEAD reads nothing', async () => {
    const reads = countReads(service)
    expect(await exchange(service.url, head('HEAD', PATH))).toMatchObject({ status: 200, body: '' })
    await waitFor(async () => service.api.openStreams() === 0, 'the stream to end')
    expect(reads.counter.reads).toBe(0)
    expectError(await call(service.url, 'POST', PATH, {}), 405)
  })
})

describe('turns that failed', () => {
  it.concurrent('are counted, and many cause a warning', async () => {
    await withService({}, async (service) => {
      const stream = await open(service)
      await untilHealthy(stream)
      const id = await createScriptedSession(service.url, [{ error: { status: 401, message: 'no' } }])
      await post(service.url, id)
      await waitForEvent(service.url, id, 'turn.failed')
      const { data } = await untilHealth(stream, ({ turns }) => turns.failed === 1)
      expect(data.health).toMatchObject({
        status: 'warning',
        reasons: ['More than a tenth of the turns that ended within the last hour failed.'],
        turns: { running: 0, failed: 1 },
      })
      stream.close()
    })
  })
})

describe('workers', () => {
  it.concurrent('are reported missing, and counted as soon as they poll', async () => {
    await withService({ worker: false }, async (service) => {
      const stream = await open(service)
      const { data } = await untilHealth(stream, () => true)
      expect(data.health).toMatchObject({
        status: 'degraded',
        reasons: ['No worker polls the task queue.'],
        workers: 0,
        task_queue_backlog: 0,
      })
      const id = await createScriptedSession(service.url, [{ text: 'Hello.' }])
      await post(service.url, id)
      await untilHealth(stream, ({ task_queue_backlog, turns }) => task_queue_backlog === 1 && turns.running === 1)
      await service.startWorker()
      const { data: later } = await untilHealth(stream, ({ workers }) => workers === 1)
      expect(later.health.status).not.toBe('degraded')
      await waitFor(async () => {
        const { turns, task_queue_backlog } = snapshotsOf(stream).at(-1)?.health ?? {}
        return turns?.running === 0 && task_queue_backlog === 0
      }, 'the turn to have ended')
      stream.close()
    })
  })
})

describe('Temporal away', () => {
  it.concurrent('degrades the health, with unknown values, until it is back', async () => {
    const proxy = await startProxy(process.env.TEMPORAL_ADDRESS ?? '')
    try {
      await withService({ worker: false, environment: { TEMPORAL_ADDRESS: proxy.address } }, async (service) => {
        const stream = await open(service)
        await untilHealth(stream, ({ workers }) => workers === 0)
        proxy.cut()
        const { data } = await untilHealth(stream, ({ workers }) => workers === null)
        const none = { running: null, failed: null }
        expect(data.health).toEqual({
          status: 'degraded',
          reasons: ['Temporal does not answer.'],
          workers: null,
          task_queue_backlog: null,
          turns: { ...none, retrying: 0, stalled: 0 },
          executions: none,
        })
        const other = await open(service)
        await untilHealth(other, ({ workers }) => workers === null)
        proxy.mend()
        for (const one of [stream, other]) {
          await waitFor(async () => snapshotsOf(one).at(-1)?.health.workers === 0, 'Temporal to answer')
          one.close()
        }
      })
    } finally {
      await proxy.close()
    }
  })

  it.concurrent('holds up neither the start of a stream nor the shutdown', async () => {
    await withService({ worker: false, environment: { TEMPORAL_ADDRESS: '127.0.0.1:1' } }, async (service) => {
      const stream = await open(service)
      await stream.until(({ event }) => event === 'connected')
      await service.api.close()
      await stream.ended
      expect(stream.frames).toEqual([CONNECTED, disconnecting('shutdown')])
    })
  })
})

describe('the end of a monitoring stream', () => {
  it.concurrent('comes after its cycle, and asks the client back after a second', async () => {
    await withService({ worker: false, sse: { monitoringCycleMs: 2500, cycleMs: 50 } }, async (service) => {
      answerAtOnce(service)
      const stream = await open(service)
      await stream.ended
      expect(stream.frames.map(({ event }) => event)).toEqual(['connected', 'snapshot', 'disconnecting'])
      expect(stream.frames.at(-1)).toEqual(disconnecting('connection_cycle'))
      expect(service.api.openStreams()).toBe(0)
    })
  })

  it('differs by a fifth, so that not all come back at once', async () => {
    const cycleMs = 543_210
    const timers = jest.spyOn(globalThis, 'setTimeout')
    await withService({ worker: false, sse: { monitoringCycleMs: cycleMs } }, async (service) => {
      const streams = await Promise.all(Array.from({ length: 12 }, () => open(service)))
      for (const stream of streams) {
        await stream.until(({ event }) => event === 'connected')
        stream.close()
      }
    })
    const lifetimes = timers.mock.calls
      .map(([, ms]) => ms ?? 0)
      .filter((ms) => ms >= 0.8 * cycleMs && ms <= 1.2 * cycleMs)
    timers.mockRestore()
    // Twelve lifetimes are spread over 40% of the cycle. All within 10% happens once in half a million runs.
    expect(new Set(lifetimes).size).toBeGreaterThanOrEqual(12)
    expect(Math.max(...lifetimes) - Math.min(...lifetimes)).toBeGreaterThan(0.1 * cycleMs)
  })

  it.concurrent('is announced at shutdown, after which nothing more is read', async () => {
    await withService({}, async (service) => {
      const reads = countReads(service)
      const streams = await Promise.all([open(service), open(service)])
      await Promise.all(streams.map((stream) => untilHealth(stream, () => true)))
      await service.api.close()
      for (const stream of streams) {
        await stream.ended
        expect(stream.frames.at(-1)).toEqual(disconnecting('shutdown'))
      }
      await expectQuiet(reads)
    })
  })
})

describe('a standard EventSource', () => {
  it.concurrent('has a snapshot from every connection, over their cycles', async () => {
    await withService({ worker: false, sse: { monitoringCycleMs: 3000 } }, async (service) => {
      answerAtOnce(service)
      const source = new EventSource(service.url + PATH)
      const seen: Json[] = []
      for (const type of ['connected', 'snapshot', 'disconnecting'])
        source.addEventListener(type, (event) => seen.push([type, JSON.parse(event.data)]))
      try {
        const snapshots = () => seen.filter(([type]) => type === 'snapshot')
        await waitFor(async () => snapshots().length >= 2, 'snapshots of two connections')
        for (const [, data] of snapshots()) DurableSnapshot.strict().parse(data)
        expect(seen.map(([type]) => type).slice(0, 4)).toEqual(['connected', 'snapshot', 'disconnecting', 'connected'])
      } finally {
        source.close()
      }
    })
  })
})
