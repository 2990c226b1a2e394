import {
  call,
  createScriptedSession,
  type Json,
  listEvents,
  textMessage,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses, type ServiceProcess, startLabWorkerProcess } from '../support/process.ts'
import { type Proxy as ServerProxy, startProxy } from '../support/proxy.ts'
import { expectSoundRecord, standstillMs, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { runnerPid } from '../support/temporal.ts'

/**
 * Short enough to end within the heartbeat timeout, so the cut-off worker records all of it before it is found missing.
 */
const SHORT = { text: 'one two three four five six', tokens_per_second: 6 }
const SLOW = { text: Array.from({ length: 12 }, (_, index) => `word${index}`).join(' '), tokens_per_second: 3 }
const QUICK = { text: 'done' }
const callOne = (name: string, args: object = {}) => [{ id: 'one', name, arguments: args }]

/** Worker process whose connection to Temporal can be cut. It then goes on working unheard. */
type CuttableWorker = { process: ServiceProcess; proxy: ServerProxy }

/** Service with two workers for one test, so that the tests can wait at the same time. */
type Site = { service: TestService; workers: CuttableWorker[] }

const sites: Site[] = []
afterAll(async () => {
  await killProcesses()
  for (const { service } of sites) await service.stop()
  for (const { proxy } of sites.flatMap(({ workers }) => workers)) await proxy.close()
})

async function startSite(): Promise<Site> {
  const service = await startService({ worker: false, capabilities: [createLab().capability] })
  const site: Site = { service, workers: [] }
  sites.push(site)
  site.workers = await Promise.all([startCuttable(service), startCuttable(service)])
  return site
}

async function startCuttable(service: TestService): Promise<CuttableWorker> {
  const proxy = await startProxy(service.config.TEMPORAL_ADDRESS)
  return { proxy, process: await startLabWorkerProcess(service, { TEMPORAL_ADDRESS: proxy.address }) }
}

type Started = { site: Site; id: string; turnId: string; stream: OpenStream }

async function startTurn(site: Site, steps: object[]): Promise<Started> {
  const { service } = site
  const id = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'lab' }] })
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  return { site, id, turnId: body.id.replace('message_', 'turn_'), stream }
}

const count = (events: Json[], type: string): number => typesOf(events).filter((other) => other === type).length

const runnerOf = ({ site, turnId }: Started): Promise<CuttableWorker> =>
  waitFor(async () => {
    const pid = await runnerPid(site.service, turnId)
    return site.workers.find(({ process }) => process.pid === pid)
  }, 'a worker to run the step')

/** Waits for the end of a turn of two steps whose one tool succeeded. `answers` is the number of model calls. */
async function expectFinished(
  { site, id, stream }: Started,
  answers: number,
  since: number,
  what: string,
): Promise<Json[]> {
  const events = await waitUntilIdle(site.service.url, id)
  await stream.until((frame) => frame.event === 'session.idled')
  expect(stream.events()).toEqual(events)
  expectSoundRecord(events)
  expect(count(events, 'output.message.started')).toBe(answers)
  expect(count(events, 'turn.completed')).toBe(1)
  expect(events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data.status)).toEqual(['success'])
  process.stdout.write(`recovery: ${what}: ${standstillMs(events, since)} ms\n`)
  return events
}

describe('a worker that has recorded what it can no longer report', () => {
  it.concurrent('spares the next one the model call', async () => {
    const turn = await startTurn(await startSite(), [{ ...SHORT, tool_calls: callOne('echo') }, QUICK])
    await turn.stream.until((frame) => frame.event === 'output.message.delta')
    const runner = await runnerOf(turn)
    runner.proxy.cut()
    await turn.stream.until((frame) => frame.event === 'act.started')
    await expectFinished(turn, 2, Date.now(), 'cut off once the answer was recorded')
    runner.proxy.mend()
    turn.stream.close()
  })

  it.concurrent('spares the next one the run of a tool, even if the tool must not run again', async () => {
    const turn = await startTurn(await startSite(), [{ ...QUICK, tool_calls: callOne('once', { ms: 1000 }) }, QUICK])
    await turn.stream.until((frame) => frame.event === 'tool.started')
    const runner = await runnerOf(turn)
    runner.proxy.cut()
    await turn.stream.until((frame) => frame.event === 'tool.completed')
    await expectFinished(turn, 2, Date.now(), 'cut off once the result was recorded')
    runner.proxy.mend()
    turn.stream.close()
  })
})

describe('a worker that was frozen and comes back', () => {
  it.concurrent.each([
    ['in mid-stream', [{ ...SLOW, tool_calls: callOne('echo') }, QUICK], 'output.message.delta', 3],
    ['while it ran a tool', [{ ...QUICK, tool_calls: callOne('wait', { ms: 6000 }) }, QUICK], 'tool.started', 2],
  ])('%s adds nothing to what another worker has recorded', async (where, steps, until, answers) => {
    const site = await startSite()
    const turn = await startTurn(site, steps)
    await turn.stream.until((frame) => frame.event === until)
    const runner = await runnerOf(turn)
    runner.process.freeze()
    const events = await expectFinished(turn, answers, Date.now(), `frozen ${where}`)
    runner.process.thaw()
    // Once the worker takes part in turns again, it has finished whatever it had begun.
    const isBack = async () => {
      const later = await startTurn(site, [{ ...QUICK, tool_calls: callOne('wait', { ms: 300 }) }, QUICK])
      const next = await runnerOf(later)
      await waitUntilIdle(site.service.url, later.id)
      later.stream.close()
      return next === runner
    }
    await waitFor(isBack, 'the thawed worker to run a step')
    expect(await listEvents(site.service.url, turn.id)).toEqual(events)
    turn.stream.close()
    expect(turn.stream.events()).toEqual(events)
  })
})
