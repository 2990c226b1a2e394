import { createScriptedAgent } from '../support/agents.ts'
import { call, createScriptedSession, type Json, listEvents, waitFor, waitUntilIdle } from '../support/http.ts'
import { killProcesses } from '../support/process.ts'
import { expectSoundRecord } from '../support/record.ts'
import { type TestService, withService } from '../support/service.ts'
import { withClient } from '../support/temporal.ts'
import { cancel, getTurn, post, turnIdOf } from '../support/turns.ts'
import { createWorkerPool, type WorkerPool } from '../support/workers.ts'

const TEXT = Array.from({ length: 30 }, (_, index) => `word${index}`).join(' ')
const CALLS = ['one', 'two', 'three'].map((id) => ({ id, name: 'ask_slow', arguments: { message: id } }))

afterAll(killProcesses)

type Asked = { session: string; turnId: string; children: { session_id: string; turn_id: string }[] }

/** Starts a turn that asks an agent three times at once, and waits until all answers stream. */
async function startAsking({ url }: TestService): Promise<Asked> {
  const agent = await createScriptedAgent(url, [{ text: TEXT, tokens_per_second: 4 }], { name: 'Slow' })
  const session = await createScriptedSession(url, [{ tool_calls: CALLS }, { text: 'Done.' }], {
    capabilities: [agent],
  })
  const turnId = turnIdOf(await post(url, session))
  const children = await waitFor(async () => {
    const started = (await listEvents(url, session)).filter(({ type }) => type === 'tool.started')
    return started.length === CALLS.length && started.map(({ data }) => data.child)
  }, 'three calls')
  for (const { session_id } of children) {
    await waitFor(async () => {
      const { status, body } = await call(url, 'GET', `/v1/sessions/${session_id}/events`)
      return status === 200 && body.data.some(({ type }: Json) => type === 'output.message.delta')
    }, 'a streamed answer')
  }
  return { session, turnId, children }
}

const running = (service: TestService): Promise<number> =>
  withClient(service, async (client) => {
    const query = `WorkflowType = 'turn' AND ExecutionStatus = 'Running' AND TaskQueue = '${service.config.TEMPORAL_TASK_QUEUE}'`
    return (await client.workflow.count(query)).count
  })

const withWorkers = (check: (service: TestService, pool: WorkerPool) => Promise<void>): Promise<void> =>
  withService({ worker: false }, async (service) => {
    const pool = createWorkerPool(service, 1)
    try {
      await pool.fill()
      await check(service, pool)
    } finally {
      await pool.killAll()
    }
  })

describe('agents that an agent asks', () => {
  it.concurrent('answer once each when the worker is killed', () =>
    withWorkers(async (service, pool) => {
      const { session, turnId, children } = await startAsking(service)
      await service.startWorker()
      await pool.killAll()
      const events = await waitUntilIdle(service.url, session)
      expectSoundRecord(events)
      const answers = events.filter(({ type }) => type === 'tool.completed')
      expect(answers.map(({ data }) => JSON.parse(data.result[0].text).answer)).toEqual([TEXT, TEXT, TEXT])
      for (const { session_id } of children) {
        const own = await listEvents(service.url, session_id)
        expectSoundRecord(own)
        expect(own.filter(({ type }) => type === 'input.message')).toHaveLength(1)
      }
      expect(await getTurn(service.url, session, turnId)).toMatchObject({ status: 'completed', children: { turns: 3 } })
      await waitFor(async () => (await running(service)) === 0, 'no workflow to run')
    }))

  it.concurrent('leave nothing running when the turn is cancelled after the worker was killed', () =>
    withWorkers(async (service, pool) => {
      const { session, children } = await startAsking(service)
      await waitFor(async () => (await running(service)) === 4, 'four workflows')
      await pool.killAll()
      await cancel(service.url, session)
      await service.startWorker()
      for (const { session_id, turn_id } of children) {
        await waitFor(
          async () => (await getTurn(service.url, session_id, turn_id)).status === 'cancelled',
          'the end of a child turn',
        )
      }
      await waitFor(async () => (await running(service)) === 0, 'no workflow to run')
    }))
})
