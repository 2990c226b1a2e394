import type { Client, ScheduleDescription } from '@temporalio/client'
import type { RetentionOutcome } from '../../workflows/messages.ts'
import { createScriptedSession, createSession, listEvents, waitFor, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { countDeltas, insertOldTurns } from '../support/old-turns.ts'
import { killProcesses, startWorkerProcess } from '../support/process.ts'
import { startService, type TestService } from '../support/service.ts'
import { readable, withClient } from '../support/temporal.ts'
import { post } from '../support/turns.ts'

const services: TestService[] = []
async function start(worker: boolean): Promise<TestService> {
  const service = await startService({ worker, retention: { deltasMs: 1000 } })
  services.push(service)
  return service
}
afterAll(async () => {
  await killProcesses()
  for (const service of services) await service.stop()
})

const describeSchedule = (service: TestService, client: Client): Promise<ScheduleDescription> =>
  client.schedule.getHandle(`${service.config.TEMPORAL_TASK_QUEUE}-retention`).describe()

/** Returns the workflows that the schedule started most recently, oldest first. */
const runsOf = async (service: TestService, client: Client) =>
  (await describeSchedule(service, client)).info.recentActions.map(({ action }) =>
    client.workflow.getHandle(action.workflow.workflowId, action.workflow.firstExecutionRunId),
  )

describe('the schedule of retention', () => {
  it('deletes what has expired, and its workflows report how much', async () => {
    const service = await start(true)
    const id = await createScriptedSession(service.url, [{ text: 'SECRET-ANSWER', thinking: 'SECRET-THOUGHT' }])
    await post(service.url, id)
    const events = await waitUntilIdle(service.url, id)
    await waitFor(async () => (await countDeltas(service.platform.deps, id)) === 0, 'the deltas to go')
    const left = events.filter(({ type }) => !type.endsWith('.delta'))
    expect(await listEvents(service.url, id)).toEqual(left)
    await withClient(service, async (client) => {
      const { history, outcome } = await waitFor(async () => {
        for (const run of await runsOf(service, client)) {
          const outcome: RetentionOutcome = await run.result()
          if (outcome.turns > 0) return { outcome, history: await run.fetchHistory() }
        }
        return undefined
      }, 'the run that did it')
      expect(outcome).toEqual({ turns: 1, deltas: events.length - left.length, more: false })
      const text = readable(history)
      expect(text).toContain('delete what has expired')
      expect(text).not.toContain('SECRET')
    })
  })

  it('goes on when the worker that runs it is killed, with the same record at the end', async () => {
    const service = await start(false)
    const { deps } = service.platform
    const id = await createSession(service.url)
    await insertOldTurns(deps, id, { turns: 4, steps: 1, deltas: 9000 })
    const others = { sessionId: toUuid(id), type: { not: 'output.message.delta' } }
    const select = { sequence: true, type: true, turnId: true, step: true } as const
    const read = () => deps.db.event.findMany({ where: others, select, orderBy: { sequence: 'asc' } })
    const before = await read()
    // A lock on a delta of the last turn stops the run half-way.
    await deps.db.$transaction(
      async (db) => {
        await db.$executeRaw`
          SELECT FROM events WHERE session_id = ${toUuid(id)}::uuid AND type = 'output.message.delta'
          ORDER BY sequence DESC LIMIT 1 FOR UPDATE`
        const worker = await startWorkerProcess(service)
        await waitFor(async () => {
          const rows = await deps.db.$queryRaw<{ waiting: number }[]>`
            SELECT count(*)::int AS waiting FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%DELETE FROM events%'`
          return rows[0]?.waiting === 1
        }, 'the run to stand still')
        await worker.kill()
      },
      { timeout: 30_000 },
    )
    const left = await countDeltas(deps, id)
    expect([0, 18_000]).toContain(left)
    await startWorkerProcess(service)
    await withClient(service, async (client) => {
      const attempts = await waitFor(async () => {
        for (const run of await runsOf(service, client)) {
          if ((await run.describe()).status.name !== 'COMPLETED') continue
          const { events } = await run.fetchHistory()
          const started = events?.find((event) => event.activityTaskStartedEventAttributes)
          const { attempt } = started?.activityTaskStartedEventAttributes ?? {}
          if (attempt && attempt > 1) return attempt
        }
        return undefined
      }, 'the second attempt')
      expect(attempts).toBe(2)
    })
    expect(await countDeltas(deps, id)).toBe(0)
    expect(await read()).toEqual(before)
    expect(await deps.db.turn.count({ where: { sessionId: toUuid(id), deltasDeleted: false } })).toBe(0)
  })
})
