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
import { type TestService, withService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { type RunPlace, runnerPid } from '../support/temporal.ts'
import { createWorkerPool, type WorkerPool } from '../support/workers.ts'

/** Slow enough in all tests that no worker finishes it before it is found missing or told to stop. */
const TEXT = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')

type Site = { service: TestService; pool: WorkerPool }
type Started<T = Site> = { site: T; id: string; turnId: string; stream: OpenStream }
type Served = Pick<Site, 'service'>

afterAll(killProcesses)

/**
 * Runs a test with a service of its own, so that the tests can wait at the same time. Its turn begins in a process, which
 * the test kills, and goes on in a worker of the test's own process, which starts once the turn has begun.
 */
const withSite = (check: (site: Site) => Promise<void>): Promise<void> =>
  withService({ worker: false }, async (service) => {
    const pool = createWorkerPool(service, 1)
    try {
      await pool.fill()
      await check({ service, pool })
    } finally {
      await pool.killAll()
    }
  })

/** Starts a session with an open stream and a message that a worker answers. */
async function startTurn<T extends Served>(site: T, step: object): Promise<Started<T>> {
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

async function finishedRecord({ site, id, stream }: Started<Served>): Promise<Json[]> {
  await stream.until((frame) => frame.event === 'session.idled')
  const events = await waitUntilIdle(site.service.url, id)
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
  it.concurrent('continues soon on another and records everything but the answer once, wherever its step ran', () =>
    withSite(async (site) => {
      const inActivity = await startTurn(site, { text: TEXT, tokens_per_second: 4 })
      const runner = await runnerOf(inActivity, 'activity')
      const inTask = await startTurn(site, { text: TEXT, tokens_per_second: 5 })
      // Soon, because a long step becomes an activity.
      expect(await runnerOf(inTask, 'workflow_task')).toBe(runner)
      await site.service.startWorker()
      for (const { stream } of [inActivity, inTask])
        await stream.until(() => stream.events().filter((event) => event.type === 'output.message.delta').length >= 3)
      await site.pool.kill(runner)
      const killedAt = Date.now()
      const recoveries = Object.entries({ activity: inActivity, workflow_task: inTask }).map(async ([place, turn]) => {
        await untilStartedAgain(turn.stream)
        report(`killed in mid-stream, in the ${place}`, Date.now() - killedAt)
        expect(compactTypes(await finishedRecord(turn))).toEqual(firstTurnTypes('in_text'))
      })
      await Promise.all(recoveries)
    }))

  it.concurrent('is not recorded again if the worker was killed just after its end', () =>
    withSite(async (site) => {
      const turn = await startTurn(site, { text: TEXT, delay_ms: 500 })
      const { id, stream } = turn
      const runner = await runnerOf(turn)
      await stream.until((frame) => frame.event === 'session.idled')
      await site.pool.kill(runner)
      await site.service.startWorker()
      await call(site.service.url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('And then?'))
      const events = await listEvents(site.service.url, id)
      expectSoundRecord(events)
      expect(compactTypes(events)).toEqual([
        ...firstTurnTypes(),
        ...firstTurnTypes().filter((type) => type !== 'session.started'),
      ])
      stream.close()
    }))

  it.concurrent('answers a message that has joined it, and ends after that', () =>
    withSite(async (site) => {
      const { url } = site.service
      const steer = { ...textMessage('Steer'), on_busy: 'steer' }
      const steps = [
        { text: TEXT, tokens_per_second: 5 },
        { text: TEXT, tokens_per_second: 5 },
      ]
      const id = await createScriptedSession(url, steps)
      const stream = await openStream(url, `/v1/sessions/${id}/sse`)
      await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go on'))
      await stream.until((frame) => frame.event === 'output.message.delta')
      await call(url, 'POST', `/v1/sessions/${id}/messages`, steer)
      await site.pool.killAll()
      await site.service.startWorker()
      // The attempt that takes over has read the message, so the turn ends with its answer.
      await stream.until((frame) => frame.event === 'session.idled')
      stream.close()
      const events = await waitUntilIdle(url, id)
      expectSoundRecord(events)
      const answers = events.filter(({ type }) => type === 'output.message.completed')
      expect(answers).toHaveLength(1)
      const { messages } = events.findLast(({ type }) => type === 'llm.generation')?.data ?? {}
      expect(messages.map(({ role }: Json) => role)).toEqual(['user', 'user'])
    }))

  it.concurrent('continues on a worker that starts only after all were killed', () =>
    withSite(async (site) => {
      const inText = await startTurn(site, { text: TEXT, tokens_per_second: 5 })
      const beforeText = await startTurn(site, { text: TEXT, delay_ms: 8000 })
      await inText.stream.until((frame) => frame.event === 'output.message.delta')
      await beforeText.stream.until((frame) => frame.event === 'output.message.started')
      await site.pool.killAll()
      const killedAt = Date.now()
      await site.service.startWorker()
      await Promise.all([inText, beforeText].map(({ stream }) => untilStartedAgain(stream)))
      report('all killed, one started', Date.now() - killedAt)
      expect(compactTypes(await finishedRecord(inText))).toEqual(firstTurnTypes('in_text'))
      expect(compactTypes(await finishedRecord(beforeText))).toEqual(firstTurnTypes('before_text'))
    }))
})

describe('a worker that is not dead', () => {
  it.concurrent('loses its turn with Temporal, writes nothing more of it, and logs only lines of JSON', () =>
    withService({ worker: false }, async (service) => {
      const proxy = await startProxy(service.config.TEMPORAL_ADDRESS)
      const worker = await startWorkerProcess(service, { TEMPORAL_ADDRESS: proxy.address })
      try {
        // A worker keeps its steps for the first ten seconds.
        const turn = await startTurn({ service }, { text: TEXT, tokens_per_second: 2 })
        await turn.stream.until((frame) => frame.event === 'output.message.delta')
        const pid = await waitFor(() => runnerPid(service, turn.turnId), 'a worker to run the step')
        expect(pid).toBe(worker.pid)
        await service.startWorker()
        proxy.cut()
        const cutAt = Date.now()
        await untilStartedAgain(turn.stream)
        report('cut off from Temporal', Date.now() - cutAt)
        expect(compactTypes(await finishedRecord(turn))).toEqual(firstTurnTypes('in_text'))
        // The Temporal library's lines are among them.
        await waitFor(async () => worker.lines.some((line) => line.includes('gRPC call')), 'the library to complain')
        expect(worker.lines.filter((line) => !/^\{.*\}$/.test(line))).toEqual([])
      } finally {
        await worker.kill()
        await proxy.close()
      }
    }))

  it.concurrent('hands its turn over when it is told to stop', () =>
    withSite(async (site) => {
      const turn = await startTurn(site, { text: TEXT, tokens_per_second: 3 })
      await turn.stream.until((frame) => frame.event === 'output.message.delta')
      const runner = await runnerOf(turn)
      await site.service.startWorker()
      const stoppedAt = Date.now()
      const stopping = runner.stop()
      await untilStartedAgain(turn.stream)
      report('told to stop', Date.now() - stoppedAt)
      expect(compactTypes(await finishedRecord(turn))).toEqual(firstTurnTypes('in_text'))
      const { body } = await call(site.service.url, 'GET', `/v1/sessions/${turn.id}/turns/${turn.turnId}`)
      expect(body.takeovers).toMatchObject([{ iteration: 1, reason: 'process_stopped' }])
      await stopping
    }))
})
