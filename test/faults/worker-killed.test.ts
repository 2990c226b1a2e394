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
import { runnerPid } from '../support/temporal.ts'

/** The target with another worker there is 6 s; a loaded machine may take longer. */
const MOST_RECOVERY_MS = 15_000
const TEXT = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')

let service: TestService
let workers: ServiceProcess[] = []

beforeAll(async () => {
  service = await startService({ worker: false })
  workers = await Promise.all([startWorkerProcess(service), startWorkerProcess(service)])
}, 60_000)
afterEach(async () => {
  workers.push(...(await Promise.all(Array.from({ length: 2 - workers.length }, () => startWorkerProcess(service)))))
}, 60_000)
afterAll(async () => {
  await killProcesses()
  await service.stop()
})

/** A session with an open stream and a message that a worker answers. */
async function startTurn(step: object): Promise<{ id: string; turnId: string; stream: OpenStream }> {
  const id = await createScriptedSession(service.url, [step])
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go on'))
  return { id, turnId: body.id.replace('message_', 'turn_'), stream }
}

/** The worker that runs the turn's step; it is no longer counted on. */
async function takeRunner(turnId: string): Promise<ServiceProcess> {
  const pid = await waitFor(() => runnerPid(service, turnId), 'a worker to run the step')
  const runner = workers.find((worker) => worker.pid === pid)
  if (runner === undefined) throw new Error(`no worker has the pid ${pid}`)
  workers = workers.filter((worker) => worker !== runner)
  return runner
}

const starts = (stream: OpenStream): Json[] =>
  stream.events().filter((event) => event.type === 'output.message.started')
const untilStartedAgain = (stream: OpenStream) => stream.until(() => starts(stream).length === 2, 30_000)

async function finishedRecord(id: string, stream: OpenStream): Promise<Json[]> {
  const events = await waitUntilIdle(service.url, id, 40_000)
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
  it('goes on soon with another worker and tells everything but the answer once', async () => {
    const { id, turnId, stream } = await startTurn({ text: TEXT, tokens_per_second: 20 })
    await stream.until(() => stream.events().filter((event) => event.type === 'output.message.delta').length >= 3)
    const runner = await takeRunner(turnId)
    await runner.kill()
    const killedAt = Date.now()
    await untilStartedAgain(stream)
    const recoveryMs = Date.now() - killedAt
    report('killed in mid-stream', recoveryMs)
    const events = await finishedRecord(id, stream)
    expect(compactTypes(events)).toEqual(firstTurnTypes('in_text'))
    expect(recoveryMs).toBeLessThan(MOST_RECOVERY_MS)
  }, 60_000)

  it('goes on when it was killed before the first token', async () => {
    const { id, turnId, stream } = await startTurn({ text: TEXT, delay_ms: 1500 })
    await stream.until((frame) => frame.event === 'output.message.started')
    await (await takeRunner(turnId)).kill()
    const killedAt = Date.now()
    await untilStartedAgain(stream)
    report('killed before the first token', Date.now() - killedAt)
    expect(compactTypes(await finishedRecord(id, stream))).toEqual(firstTurnTypes('before_text'))
  }, 60_000)

  it('is not told again when it was killed just after the end', async () => {
    const { id, turnId, stream } = await startTurn({ text: TEXT, delay_ms: 500 })
    const runner = await takeRunner(turnId)
    await stream.until((frame) => frame.event === 'session.idled')
    await runner.kill()
    await call(service.url, 'POST', `/v1/sessions/${id}/messages?wait=20`, textMessage('And then?'))
    const events = await listEvents(service.url, id)
    expectSoundRecord(events)
    expect(compactTypes(events)).toEqual([
      ...firstTurnTypes(),
      ...firstTurnTypes().filter((type) => type !== 'session.started'),
    ])
    stream.close()
  }, 60_000)

  it('goes on with a worker that starts only after all were killed', async () => {
    const { id, stream } = await startTurn({ text: TEXT, tokens_per_second: 20 })
    await stream.until((frame) => frame.event === 'output.message.delta')
    await Promise.all(workers.map((worker) => worker.kill()))
    const killedAt = Date.now()
    workers = [await startWorkerProcess(service)]
    await untilStartedAgain(stream)
    report('all killed, one started', Date.now() - killedAt)
    expect(compactTypes(await finishedRecord(id, stream))).toEqual(firstTurnTypes('in_text'))
  }, 60_000)
})

describe('a turn whose worker is not dead', () => {
  it('is taken over from a worker that lost Temporal, which then writes nothing more', async () => {
    const proxy = await startProxy(service.config.TEMPORAL_ADDRESS)
    await Promise.all(workers.map((worker) => worker.kill()))
    const zombie = await startWorkerProcess(service, { TEMPORAL_ADDRESS: proxy.address })
    workers = [zombie]
    try {
      // So slow that the one without Temporal cannot finish before it is missed, also on a loaded machine.
      const { id, stream } = await startTurn({ text: TEXT, tokens_per_second: 3 })
      await stream.until((frame) => frame.event === 'output.message.delta')
      workers.push(await startWorkerProcess(service))
      proxy.cut()
      const cutAt = Date.now()
      await untilStartedAgain(stream)
      report('cut off from Temporal', Date.now() - cutAt)
      expect(compactTypes(await finishedRecord(id, stream))).toEqual(firstTurnTypes('in_text'))
    } finally {
      await zombie.kill()
      workers = workers.filter((worker) => worker !== zombie)
      await proxy.close()
    }
  }, 60_000)

  it('is handed over by a worker that is told to stop', async () => {
    const { id, turnId, stream } = await startTurn({ text: TEXT, tokens_per_second: 6 })
    await stream.until((frame) => frame.event === 'output.message.delta')
    const runner = await takeRunner(turnId)
    const stoppedAt = Date.now()
    const stopping = runner.stop()
    await untilStartedAgain(stream)
    report('told to stop', Date.now() - stoppedAt)
    expect(compactTypes(await finishedRecord(id, stream))).toEqual(firstTurnTypes('in_text'))
    await stopping
  }, 60_000)
})
