import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
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
import { type TestService, withService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { runnerPid, withClient, withWorkflow } from '../support/temporal.ts'

/**
 * Short enough to end within the heartbeat timeout, so the cut-off worker records all of it before it is found missing.
 */
const SHORT = { text: 'one two three four five six', tokens_per_second: 3 }
const SLOW = { text: Array.from({ length: 12 }, (_, index) => `word${index}`).join(' '), tokens_per_second: 3 }
const QUICK = { text: 'done' }
/** temporal.api.enums.v1.TaskQueueType */
const ACTIVITY_QUEUE = 2
const callOne = (name: string, args: object = {}) => [{ id: 'one', name, arguments: args }]

/**
 * Service for one test, so that the tests can wait at the same time. Its turns begin in a process whose connection to
 * Temporal can be cut, so that it goes on working unheard, or to Postgres.
 */
type Site = { service: TestService; process: ServiceProcess; proxy: ServerProxy }

afterAll(killProcesses)

const withSite = (check: (site: Site) => Promise<void>, from: 'Temporal' | 'Postgres' = 'Temporal'): Promise<void> =>
  withService({ worker: false, capabilities: [createLab().capability] }, async (service) => {
    const { DATABASE_URL, TEMPORAL_ADDRESS } = service.config
    const database = new URL(DATABASE_URL)
    const proxy = await startProxy(from === 'Temporal' ? TEMPORAL_ADDRESS : database.host)
    database.host = proxy.address
    const way: Record<string, string> =
      from === 'Temporal' ? { TEMPORAL_ADDRESS: proxy.address } : { DATABASE_URL: database.href }
    const process = await startLabWorkerProcess(service, way)
    try {
      await check({ service, process, proxy })
    } finally {
      await process.kill()
      await proxy.close()
    }
  })

type Started = { site: Site; id: string; turnId: string; stream: OpenStream }

async function startTurn(site: Site, steps: object[]): Promise<Started> {
  const { service } = site
  const id = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'lab' }] })
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  return { site, id, turnId: body.id.replace('message_', 'turn_'), stream }
}

const count = (events: Json[], type: string): number => typesOf(events).filter((other) => other === type).length

/** Waits until the process runs the turn's step. */
const untilRun = ({ site, turnId }: Started): Promise<boolean> =>
  waitFor(async () => (await runnerPid(site.service, turnId)) === site.process.pid, 'the process to run the step')

/** Returns the types of a turn's activities that were tried more than once. */
const retriesOf = (service: TestService, turnId: string): Promise<unknown[]> =>
  withWorkflow(service, turnId, async (workflow) => {
    const { events } = await workflow.fetchHistory()
    return (events ?? []).flatMap(({ activityTaskStartedEventAttributes: started }) =>
      (started?.attempt ?? 1) > 1 ? [started?.lastFailure?.message] : [],
    )
  })

/** Waits for the end of a turn of two steps whose one tool succeeded. `answers` is the number of model calls. */
async function expectFinished(
  { site, id, stream }: Started,
  answers: number,
  since: number,
  what: string,
): Promise<Json[]> {
  await stream.until((frame) => frame.event === 'session.idled')
  const events = await waitUntilIdle(site.service.url, id)
  expect(stream.events()).toEqual(events)
  expectSoundRecord(events)
  expect(count(events, 'output.message.started')).toBe(answers)
  expect(count(events, 'turn.completed')).toBe(1)
  expect(events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data.status)).toEqual(['success'])
  process.stdout.write(`recovery: ${what}: ${standstillMs(events, since)} ms\n`)
  return events
}

/**
 * Takes activities that Temporal gives to a process, as polls that were cut off do, until the signal aborts. Calls `onTaken` for
 * each.
 */
async function swallow({ service, process }: Site, onTaken: () => void, signal: AbortSignal): Promise<void> {
  await withClient(service, async ({ connection }) => {
    const { TEMPORAL_NAMESPACE: namespace, TEMPORAL_TASK_QUEUE: name } = service.config
    const queue = { namespace, taskQueue: { name } }
    const { pollers } = await connection.workflowService.describeTaskQueue({ ...queue, taskQueueType: ACTIVITY_QUEUE })
    const identity = pollers?.find((poller) => poller.identity?.startsWith(`${process.pid}@`))?.identity
    expect(identity).toBeDefined()
    const poll = async () => {
      while (!signal.aborted) {
        const { taskToken } = await connection.workflowService.pollActivityTaskQueue({ ...queue, identity })
        if (taskToken?.length) onTaken()
      }
    }
    const polls = Array.from({ length: 10 }, () =>
      connection.withDeadline(Date.now() + 60_000, () => connection.withAbortSignal(signal, poll)),
    )
    await Promise.allSettled(polls)
  })
}

it.concurrent('an activity that Temporal gave to a process that it could not reach comes back before its heartbeat is missed', () =>
  withSite(async (site) => {
    const calls = Array.from({ length: 8 }, (_, index) => ({ ...callOne('echo')[0], id: `call_${index}` }))
    const turn = await startTurn(site, [{ ...SLOW, tool_calls: calls }, QUICK])
    await untilRun(turn)
    const taken = new AbortController()
    let count = 0
    const swallowing = swallow(site, () => void count++, taken.signal)
    await turn.stream.until((frame) => frame.event === 'act.started')
    await waitFor(async () => count > 0, 'an activity to be lost')
    site.proxy.cut()
    taken.abort()
    await swallowing
    await sleep(1500)
    site.proxy.mend()
    const events = await waitUntilIdle(site.service.url, turn.id)
    turn.stream.close()
    expectSoundRecord(events)
    expect(events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data.status)).toEqual(
      calls.map(() => 'success'),
    )
    expect(new Set(await retriesOf(site.service, turn.turnId))).toEqual(new Set(['its process has died']))
  }))

describe('a worker that has recorded what it can no longer report', () => {
  it.concurrent('spares the next one the model call', () =>
    withSite(async (site) => {
      const turn = await startTurn(site, [{ ...SHORT, tool_calls: callOne('echo') }, QUICK])
      await turn.stream.until((frame) => frame.event === 'output.message.delta')
      await untilRun(turn)
      site.proxy.cut()
      await site.service.startWorker()
      await turn.stream.until((frame) => frame.event === 'act.started')
      await expectFinished(turn, 2, Date.now(), 'cut off once the answer was recorded')
      turn.stream.close()
    }))

  it.concurrent('spares the next one the run of a tool, even if the tool must not run again', () =>
    withSite(async (site) => {
      const turn = await startTurn(site, [{ ...QUICK, tool_calls: callOne('once', { ms: 2500 }) }, QUICK])
      await turn.stream.until((frame) => frame.event === 'tool.started')
      await untilRun(turn)
      site.proxy.cut()
      await site.service.startWorker()
      await turn.stream.until((frame) => frame.event === 'tool.completed')
      await expectFinished(turn, 2, Date.now(), 'cut off once the result was recorded')
      turn.stream.close()
    }))
})

describe('a worker that was frozen and comes back', () => {
  it.concurrent('adds nothing to what another worker has recorded, whatever it was doing', () =>
    withSite(async (site) => {
      const { service, process } = site
      const inTool = await startTurn(site, [{ ...QUICK, tool_calls: callOne('wait', { ms: 6000 }) }, QUICK])
      const inStream = await startTurn(site, [{ ...SLOW, tool_calls: callOne('echo') }, QUICK])
      await inTool.stream.until((frame) => frame.event === 'tool.started')
      await inStream.stream.until((frame) => frame.event === 'output.message.delta')
      await Promise.all([inTool, inStream].map(untilRun))
      process.freeze()
      const frozenAt = Date.now()
      const other = await service.startWorker()
      const records = await Promise.all([
        expectFinished(inTool, 2, frozenAt, 'frozen while it ran a tool'),
        expectFinished(inStream, 3, frozenAt, 'frozen in mid-stream'),
      ])
      process.thaw()
      await other.stop()
      // Once the worker takes part in turns again, it has finished whatever it had begun.
      const later = await startTurn(site, [{ ...QUICK, tool_calls: callOne('wait', { ms: 1000 }) }, QUICK])
      await untilRun(later)
      await waitUntilIdle(service.url, later.id)
      later.stream.close()
      for (const [index, turn] of [inTool, inStream].entries()) {
        expect(await listEvents(service.url, turn.id)).toEqual(records[index])
        turn.stream.close()
        expect(turn.stream.events()).toEqual(records[index])
      }
    }))
})

describe('a worker that is cut off from Postgres', () => {
  it.concurrent('takes nothing until it is back, and leaves all of it to the others', () =>
    withSite(async (site) => {
      const { service, process, proxy } = site
      proxy.cut()
      const other = await service.startWorker()
      await waitFor(async () => process.lines.some((line) => line.includes('it begins again')), 'it to notice')
      for (let turns = 0; turns < 4; turns++) {
        const { id, turnId, stream } = await startTurn(site, [{ ...QUICK, tool_calls: callOne('echo') }, QUICK])
        await stream.until((frame) => frame.event === 'session.idled')
        stream.close()
        expectSoundRecord(await listEvents(service.url, id))
        expect(await retriesOf(service, turnId)).toEqual([])
      }
      await other.stop()
      proxy.mend()
      const later = await startTurn(site, [{ ...QUICK, tool_calls: callOne('wait', { ms: 1000 }) }, QUICK])
      await untilRun(later)
      await later.stream.until((frame) => frame.event === 'session.idled')
      later.stream.close()
    }, 'Postgres'))
})

describe('a worker that is cut off from Temporal', () => {
  it.concurrent('polls anew when it is back, instead of waiting for the library', () =>
    withSite(async (site) => {
      const { process, proxy } = site
      const countOf = (what: RegExp) => process.lines.filter((line) => what.test(line)).length
      proxy.cut()
      await waitFor(async () => countOf(/poll_\w+ retried 6 times/) > 0, 'its polls to be late')
      proxy.mend()
      await waitFor(async () => countOf(/worker polls/) === 2, 'another shift')
      const { id, turnId, stream } = await startTurn(site, [{ ...QUICK, tool_calls: callOne('echo') }, QUICK])
      await stream.until((frame) => frame.event === 'session.idled')
      stream.close()
      expectSoundRecord(await listEvents(site.service.url, id))
      expect(await retriesOf(site.service, turnId)).toEqual([])
    }))
})

describe('Temporal', () => {
  it.concurrent('closes the connection of a process that is frozen', async () => {
    const { hostname, port } = new URL(`http://${process.env.TEMPORAL_ADDRESS}`)
    const frozen = connect(Number(port), hostname).resume()
    // The beginning of a connection by HTTP/2 with empty settings, and then no answer to any ping.
    frozen.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1')
    const closed = once(frozen, 'close', { signal: AbortSignal.timeout(20_000) })
    expect(await closed).toEqual([false])
  })
})
