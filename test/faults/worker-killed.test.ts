import {
  call,
  createScriptedSession,
  type Json,
  listEvents,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { killProcesses, type ServiceProcess, startWorkerProcess } from '../support/process.ts'
import { startProxy } from '../support/proxy.ts'
import { answerOf, compactTypes, expectSoundRecord, firstTurnTypes } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { type RunPlace, runnerPid } from '../support/temporal.ts'
import { createWorkerPool, type WorkerPool } from '../support/workers.ts'

/** Slow enough in all tests that no worker finishes it before it is found missing or told to stop. */
const TEXT = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')

type Site = { service: TestService; pool: WorkerPool }
type Started = { site: Site; id: string; turnId: string; stream: OpenStream }

/** Services of the tests. Each test has its own service and workers, so that they can wait at the same time. */
const sites: Site[] = []
afterAll(async () => {
  await killProcesses()
  for (const { service } of sites) await service.stop()
})

async function startSite(workers: number): Promise<Site> {
  const service = await startService({ worker: false })
  const site = { service, pool: createWorkerPool(service, workers) }
  sites.push(site)
  await site.pool.fill()
  return site
}

/** Starts a session with an open stream and a message that a worker answers. */
async function startTurn(site: Site, step: object): Promise<Started> {
  const { url } = site.service
  const id = await createScriptedSession(url, [step])
  const stream = await openStream(url, `/v1/sessions/${id}/sse`)
  const { body } = await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go on'))
  return { site, id, turnId: body.id.replace('message_', 'turn_'), stream }
}

const runnerOf = ({ site, turnId }: Started, place?: RunPlace): Promise<ServiceProcess> =>
  waitFor(() => site.pool.findRunner(turnId, place), 'a worker to run the step')

const starts = (stream: OpenStream): Json[] =>
  stream.events().filter((event) => event.type === 'output.message.started')
const untilStartedAgain = (stream: OpenStream) => stream.until(() => starts(stream).length === 2)

async function finishedRecord({ site, id, stream }: Started): Promise<Json[]> {
  const events = await waitUntilIdle(site.service.url, id)
  await stream.until((frame) => frame.event === 'session.idled')
  stream.close()
  expect(stream.events()).toEqual(events)
  expectSoundRecord(events)
  expect(answerOf(events)).toBe(TEXT)
  return events
}

function report(what: string, ms: number): void {
  process.stdout.write(`recovery: ${what}: ${ms} ms\n`)
}

describe('a turn whose worker is killed', () => {
  it.concurrent.each(['workflow_task', 'activity'] as const)(
    'in the %s continues soon on another and records everything but the answer once',
    async (place) => {
      const turn = await startTurn(await startSite(2), { text: TEXT, tokens_per_second: 5 })
      const { site, stream } = turn
      await stream.until(() => stream.events().filter((event) => event.type === 'output.message.delta').length >= 3)
      await site.pool.kill(await runnerOf(turn, place))
      const killedAt = Date.now()
      await untilStartedAgain(stream)
      report(`killed in mid-stream, in the ${place}`, Date.now() - killedAt)
      expect(compactTypes(await finishedRecord(turn))).toEqual(firstTurnTypes('in_text'))
    },
  )

  it.concurrent('is not recorded again if the worker was killed just after its end', async () => {
    const turn = await startTurn(await startSite(1), { text: TEXT, delay_ms: 500 })
    const { site, id, stream } = turn
    const runner = await runnerOf(turn)
    await stream.until((frame) => frame.event === 'session.idled')
    await site.pool.kill(runner)
    await site.pool.fill()
    await call(site.service.url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('And then?'))
    const events = await listEvents(site.service.url, id)
    expectSoundRecord(events)
    expect(compactTypes(events)).toEqual([
      ...firstTurnTypes(),
      ...firstTurnTypes().filter((type) => type !== 'session.started'),
    ])
    stream.close()
  })

  it.concurrent('continues on a worker that starts only after all were killed', async () => {
    const site = await startSite(1)
    const inText = await startTurn(site, { text: TEXT, tokens_per_second: 5 })
    const beforeText = await startTurn(site, { text: TEXT, delay_ms: 8000 })
    await inText.stream.until((frame) => frame.event === 'output.message.delta')
    await beforeText.stream.until((frame) => frame.event === 'output.message.started')
    await site.pool.killAll()
    const killedAt = Date.now()
    await site.pool.fill()
    await Promise.all([inText, beforeText].map(({ stream }) => untilStartedAgain(stream)))
    report('all killed, one started', Date.now() - killedAt)
    expect(compactTypes(await finishedRecord(inText))).toEqual(firstTurnTypes('in_text'))
    expect(compactTypes(await finishedRecord(beforeText))).toEqual(firstTurnTypes('before_text'))
  })
})

describe('a turn whose worker is not dead', () => {
  it.concurrent('is taken over from a worker that lost Temporal, which then writes nothing more', async () => {
    const site = await startSite(0)
    const address = site.service.config.TEMPORAL_ADDRESS
    const proxies = await Promise.all([startProxy(address), startProxy(address)])
    const workers = await Promise.all(
      proxies.map((proxy) => startWorkerProcess(site.service, { TEMPORAL_ADDRESS: proxy.address })),
    )
    try {
      // A worker keeps its steps for the first ten seconds.
      const turn = await startTurn(site, { text: TEXT, tokens_per_second: 2 })
      await turn.stream.until((frame) => frame.event === 'output.message.delta')
      const pid = await waitFor(() => runnerPid(site.service, turn.turnId), 'a worker to run the step')
      proxies[workers.findIndex((worker) => worker.pid === pid)]?.cut()
      const cutAt = Date.now()
      await untilStartedAgain(turn.stream)
      report('cut off from Temporal', Date.now() - cutAt)
      expect(compactTypes(await finishedRecord(turn))).toEqual(firstTurnTypes('in_text'))
    } finally {
      await Promise.all(workers.map((worker) => worker.kill()))
      await Promise.all(proxies.map((proxy) => proxy.close()))
    }
  })

  it.concurrent('is handed over by a worker that is told to stop', async () => {
    const turn = await startTurn(await startSite(2), { text: TEXT, tokens_per_second: 3 })
    await turn.stream.until((frame) => frame.event === 'output.message.delta')
    const runner = await runnerOf(turn)
    const stoppedAt = Date.now()
    const stopping = runner.stop()
    await untilStartedAgain(turn.stream)
    report('told to stop', Date.now() - stoppedAt)
    expect(compactTypes(await finishedRecord(turn))).toEqual(firstTurnTypes('in_text'))
    await stopping
  })
})

describe("a worker's log", () => {
  it.concurrent('is lines of JSON, even from the Temporal library while Temporal is away', async () => {
    const { service } = await startSite(0)
    const proxy = await startProxy(service.config.TEMPORAL_ADDRESS)
    const worker = await startWorkerProcess(service, { TEMPORAL_ADDRESS: proxy.address })
    try {
      proxy.cut()
      await waitFor(async () => worker.lines.some((line) => line.includes('gRPC call')), 'the library to complain')
      expect(worker.lines.filter((line) => !/^\{.*\}$/.test(line))).toEqual([])
    } finally {
      await worker.kill()
      await proxy.close()
    }
  })
})
