import { setTimeout as sleep } from 'node:timers/promises'
import { fromId } from '../../domain/kit/ids.ts'
import { reason } from '../../domain/turns/run/reason.ts'
import { workflowEnd } from '../support/cancelling.ts'
import { createSession, listEvents, waitFor, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses, type ServiceProcess, startApiProcess, startWorkerProcess } from '../support/process.ts'
import { type FakeOpenai, questionOf, startFakeOpenai } from '../support/providers/chat-completions.ts'
import { startProxy } from '../support/proxy.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes, turnsOf, typesOf } from '../support/record.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { withClient, withWorkflow } from '../support/temporal.ts'
import { cancel, listTurns, post, waitForEvent } from '../support/turns.ts'
import { playUpgraded } from '../unit/workflows/scenarios.ts'

/**
 * Early turns begin in the process that accepted their message, before Temporal knows of them. Each message tells the
 * provider how long to take for its answer. The provider counts the requests for each message.
 */

const PIECES = 4

let provider: FakeOpenai
let environment: Record<string, string>
beforeAll(async () => {
  provider = await startFakeOpenai((request) => {
    const [, ms = '0'] = /for (\d+) ms/.exec(questionOf(request)) ?? []
    if (ms === '9999') return 'silent'
    const text = Array.from({ length: PIECES }, (_, index) => `${index} of ${questionOf(request)}. `)
    // One more event comes before the text.
    return { text, pauseMs: Number(ms) / (PIECES + 1) }
  })
  environment = { DEFAULT_OPENAI_API_KEY: 'sk-not-a-secret-of-anyone', DEFAULT_OPENAI_BASE_URL: provider.baseUrl }
})
afterAll(async () => {
  await killProcesses()
  await provider.close()
})

const askedFor = (question: string): number => provider.requests.filter((one) => questionOf(one) === question).length

let number = 0
/** Makes a message that is answered after `ms`, and that no other test sends. */
const question = (ms: number): string => `message ${++number}: think for ${ms} ms`

const answerTo = (text: string): string =>
  Array.from({ length: PIECES }, (_, index) => `${index} of ${text}. `).join('')

/** Returns how a turn's steps were taken: in workflow tasks, and by activities. */
const historyOf = (service: TestService, turnId: string): Promise<string[]> =>
  withClient(service, async (client) => {
    await workflowEnd(service, turnId)
    const { events = [] } = await client.workflow.getHandle(turnId).fetchHistory()
    return (events ?? []).flatMap((event) => {
      if (event.markerRecordedEventAttributes?.markerName === 'core_local_activity') return 'local'
      return event.activityTaskScheduledEventAttributes?.activityType?.name ?? []
    })
  })

describe('a provider that answers', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startService({ environment })
  })
  afterAll(() => service.stop())

  it.concurrent.each([
    [1, /^local$/],
    [600, /^local( reason)?$/],
    [1200, /^local( reason)?$/],
    [1300, /^local( reason)?$/],
    [1400, /^local( reason)?$/],
    // Temporal may be told of the turn seconds late on a busy machine, and `local` waits from then on.
    [6000, /^local( reason)?$/],
  ])('within %i ms is asked once, and its answer streamed and recorded once', async (ms, steps) => {
    const text = question(ms)
    const id = await createSession(service.url)
    const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
    await post(service.url, id, text)
    await stream.until((frame) => frame.event === 'session.idled')
    stream.close()
    const events = await waitUntilIdle(service.url, id)
    expect(stream.events()).toEqual(events)
    expectSoundRecord(events)
    expect(compactTypes(events)).toEqual(firstTurnTypes())
    expect(answerOf(events)).toBe(answerTo(text))
    expect(askedFor(text)).toBe(1)
    expect((await historyOf(service, turnsOf(events)[0] ?? '')).join(' ')).toMatch(steps)
  })

  it.concurrent('never fails the turn after five attempts, which Temporal shows', async () => {
    await withService({ environment: { ...environment, LLM_IDLE_TIMEOUT_SECS: '1' } }, async (own) => {
      const text = question(9999)
      const id = await createSession(own.url)
      await post(own.url, id, text)
      const events = await waitUntilIdle(own.url, id)
      expectSoundRecord(events)
      expect(typesOf(events).filter((type) => type === 'reason.retrying')).toHaveLength(4)
      expect(events.find(({ type }) => type === 'turn.failed').data.error_code).toBe('llm_error')
      expect(askedFor(text)).toBe(5)
      const taken = await historyOf(own, turnsOf(events)[0] ?? '')
      // Each failure is an activity's; the last marker is failTurn's.
      expect(taken).toEqual([...Array(5).fill(['local', 'reason']).flat(), 'local'])
    })
  })

  it.concurrent.each([300, 3200])('is hung up on by a cancellation in Temporal after %i ms', async (afterMs) => {
    const text = question(60_000)
    const id = await createSession(service.url)
    await post(service.url, id, text)
    const [turn] = await listTurns(service.url, id)
    await waitForEvent(service.url, id, 'reason.started')
    await sleep(afterMs)
    await withWorkflow(service, turn.id, (workflow) => workflow.cancel())
    const events = await waitUntilIdle(service.url, id)
    expectSoundRecord(events)
    expect(typesOf(events).slice(-2)).toEqual(['turn.cancelled', 'session.idled'])
    expect(await workflowEnd(service, turn.id)).toBe('CANCELLED')
    expect(askedFor(text)).toBe(1)
    await provider.requests.find((one) => questionOf(one) === text)?.closed
  })

  it.concurrent('is hung up on at once by a cancellation in another process', async () => {
    const peer = await service.startPeer()
    const text = question(60_000)
    const id = await createSession(service.url)
    await post(service.url, id, text)
    await waitForEvent(service.url, id, 'output.message.delta')
    expect((await cancel(peer.url, id)).body.status).toBe('cancelled')
    const cancelledAt = Date.now()
    expect(await provider.requests.find((one) => questionOf(one) === text)?.closed).toBe('hung_up')
    expect(Date.now() - cancelledAt).toBeLessThan(2000)
    const events = await waitUntilIdle(service.url, id)
    expectSoundRecord(events)
    expect(askedFor(text)).toBe(1)
    const turnId = turnsOf(events)[0] ?? ''
    expect(await withWorkflow(service, turnId, () => workflowEnd(service, turnId))).toBe('CANCELLED')
  })

  it.concurrent('is asked once for each message of a queue', async () => {
    const id = await createSession(service.url)
    const texts = Array.from({ length: 12 }, () => question(1))
    for (const text of texts) await post(service.url, id, text)
    const events = await waitUntilIdle(service.url, id)
    expectSoundRecord(events)
    expect(turnsOf(events).map((turnId) => answerOf(events, turnId))).toEqual(texts.map(answerTo))
    expect(texts.map(askedFor)).toEqual(texts.map(() => 1))
  })

  it.concurrent('is asked at most once for each message of a queue that is interrupted again and again', async () => {
    const id = await createSession(service.url)
    const texts = Array.from({ length: 20 }, (_, index) => question(index === 19 ? 1 : 400))
    for (const [index, text] of texts.entries()) {
      await post(service.url, id, text, index % 3 === 0 ? {} : { on_busy: 'interrupt' })
      await sleep(10 * (index % 5))
    }
    const events = await waitUntilIdle(service.url, id)
    expectSoundRecord(events)
    expect(answerOf(events, turnsOf(events).at(-1))).toBe(answerTo(texts.at(-1) ?? ''))
    for (const text of texts) expect([0, 1]).toContain(askedFor(text))
    for (const { id: turnId, status } of await listTurns(service.url, id)) {
      const end = await workflowEnd(service, turnId).catch(() => 'NONE')
      expect([turnId, status, end]).toEqual([turnId, status, expect.stringMatching(`^(${status.toUpperCase()}|NONE)$`)])
    }
  })

  it.concurrent('is asked once for each of more messages at once than attempts that a process runs', async () => {
    // One owner alone gets four fifths of them.
    await withService({ environment: { ...environment, MAX_MODEL_CALLS: '130' } }, async (own) => {
      const texts = Array.from({ length: 120 }, () => question(3000))
      const ids: string[] = []
      for (const _text of texts) ids.push(await createSession(own.url))
      await Promise.all(ids.map((id, index) => post(own.url, id, texts[index])))
      const { db } = own.platform.deps
      await waitFor(async () => (await db.turn.count({ where: { finishedAt: null } })) === 0, 'all turns to end')
      for (const [index, id] of ids.entries()) {
        const events = await listEvents(own.url, id)
        expectSoundRecord(events)
        expect(answerOf(events)).toBe(answerTo(texts[index] ?? ''))
      }
      const asked = texts.filter((text) => askedFor(text) !== 1)
      expect(asked.map((text) => [text, askedFor(text)])).toEqual([])
    })
  })
})

describe('a turn that has begun before its workflow', () => {
  it.concurrent('goes on when its worker is replaced by one of a later release', async () => {
    await withService({ worker: false, capabilities: [createLab().capability] }, async (service) => {
      const turnId = await playUpgraded(service.url, service)
      expect(await workflowEnd(service, turnId)).toBe('COMPLETED')
      expect(await historyOf(service, turnId)).toEqual(['reason', 'local', 'local', 'local'])
    })
  })

  it.concurrent('is started when its process died before it could start it', async () => {
    await withService({ environment, worker: false }, async (service) => {
      const { deps } = service.platform
      // The process that accepts the message begins the turn and dies.
      deps.workflows.startTurn = () => new Promise(() => {})
      const text = question(9000)
      const id = await createSession(service.url)
      const message = (await post(service.url, id, text)).body
      const [organization] = await deps.db.organization.findMany({ select: { id: true } })
      const turn = { organizationId: organization?.id ?? '', sessionId: fromId(id), turnId: fromId(message.id) }
      const dies = new AbortController()
      const known = new Promise<void>(() => {})
      const early = { holdsStep: false, claimed: () => {}, heard: () => {}, isKnown: false, known }
      const dead = reason(deps, turn, 1, { fence: -4711, signal: dies.signal, early }).catch(() => {})
      await waitForEvent(service.url, id, 'output.message.delta')
      dies.abort(new Error('killed'))
      await dead
      const worker = await startWorkerProcess(service)
      const readyAt = Date.now()
      await waitForEvent(service.url, id, 'output.message.started', 2)
      process.stdout.write(`recovery: died before the start: ${Date.now() - readyAt} ms after a worker was there\n`)
      const events = await waitUntilIdle(service.url, id)
      expectSoundRecord(events)
      expect(compactTypes(events)).toEqual(firstTurnTypes('in_text'))
      expect(askedFor(text)).toBe(2)
      await worker.kill()
    })
  })

  it.concurrent('stays in its process while Temporal is away, though that comes back later than others', async () => {
    const proxies = await Promise.all([1, 2].map(() => startProxy(process.env.TEMPORAL_ADDRESS ?? '')))
    const [ofFirst = '', ofSecond = ''] = proxies.map(({ address }) => address)
    await withService({ environment: { ...environment, TEMPORAL_ADDRESS: ofSecond } }, async (second) => {
      const first = await startApiProcess(second, 'main.ts', { TEMPORAL_ADDRESS: ofFirst })
      const texts = Array.from({ length: 6 }, () => question(14_000))
      const ids = await Promise.all(texts.map(() => createSession(second.url)))
      const streams = await Promise.all(ids.map((id) => openStream(second.url, `/v1/sessions/${id}/sse`)))
      await Promise.all(ids.map((id, index) => post(first.url, id, texts[index])))
      for (const stream of streams) await stream.until((frame) => frame.event === 'reason.started')
      for (const proxy of proxies) proxy.cut()
      await sleep(5000)
      proxies[1]?.mend()
      await sleep(1000)
      proxies[0]?.mend()
      for (const [index, stream] of streams.entries()) {
        await stream.until((frame) => frame.event === 'session.idled')
        stream.close()
        expectSoundRecord(await waitUntilIdle(second.url, ids[index] ?? ''))
      }
      expect(texts.map(askedFor)).toEqual(texts.map(() => 1))
      await first.kill()
    })
    await Promise.all(proxies.map((proxy) => proxy.close()))
  })

  /** Options of Node with which a process has a wrong clock. */
  const withClock = (aheadMs: number): Record<string, string> => {
    if (aheadMs === 0) return {}
    const code = `Date.now = ((now) => () => now() + ${aheadMs})(Date.now)`
    return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
  }

  it.concurrent.each([
    ['is killed', [0, 0], (process: ServiceProcess) => process.kill()],
    ['is killed, with a clock 10 s ahead', [10_000, 0], (process: ServiceProcess) => process.kill()],
    ['is killed, with a clock 10 s behind', [0, 10_000], (process: ServiceProcess) => process.kill()],
    ['is frozen', [0, 0], async (process: ServiceProcess) => process.freeze()],
    ['is told to stop', [0, 0], async (process: ServiceProcess) => void process.stop()],
  ])('goes on elsewhere, whatever it was doing, when its process %s', async (what, clocks, end) => {
    const [clock, otherClock] = clocks as [number, number]
    // Each is API and worker in one. The second is the test's own process, unless it has a wrong clock.
    await withService({ environment, worker: otherClock === 0 }, async (service) => {
      const start = (aheadMs: number) => startApiProcess(service, 'main.ts', withClock(aheadMs))
      const [first, other] = await Promise.all([start(clock), otherClock === 0 ? undefined : start(otherClock)])
      const { url } = other ?? service
      const texts = [question(12_000), question(12_000), question(12_000)]
      const ids = await Promise.all(texts.map(() => createSession(url)))
      const streams = await Promise.all(ids.map((id) => openStream(url, `/v1/sessions/${id}/sse`)))
      // Their ages when the process ends: in an activity, in a workflow task, and just begun.
      for (const [index, pauseMs] of [2500, 1000, 0].entries()) {
        await post(first.url, ids[index] ?? '', texts[index])
        await streams[index]?.until((frame) => frame.event === 'reason.started')
        await sleep(pauseMs)
      }
      const endedAt = Date.now()
      await end(first)
      const recoveries = streams.map(async (stream) => {
        let starts = 0
        await stream.until((frame) => frame.event === 'output.message.started' && ++starts === 2)
        return Date.now() - endedAt
      })
      process.stdout.write(`recovery: early turns whose process ${what}: ${await Promise.all(recoveries)} ms\n`)
      if (what === 'is frozen') first.thaw()
      for (const [index, id] of ids.entries()) {
        await streams[index]?.until((frame) => frame.event === 'session.idled')
        streams[index]?.close()
        const events = await waitUntilIdle(url, id)
        expectSoundRecord(events)
        expect(answerOf(events)).toBe(answerTo(texts[index] ?? ''))
        // The turn that had just begun may not have sent its request yet.
        expect(index === 2 ? [1, 2] : [2]).toContain(askedFor(texts[index] ?? ''))
      }
      await Promise.all([first.kill(), other?.kill()])
    })
  })
})
