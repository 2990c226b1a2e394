import { call, createScriptedSession, type Json, waitFor, waitUntilIdle } from '../support/http.ts'
import { killProcesses, startWorkerProcess } from '../support/process.ts'
import { expectSoundRecord } from '../support/record.ts'
import { withService } from '../support/service.ts'
import { withClient } from '../support/temporal.ts'
import { newQueueKey, startToolWorker } from '../support/tool-worker.ts'
import { post, turnIdOf } from '../support/turns.ts'

const task_queue = 'warehouse'
const tool = (name: string, runs: object) => ({
  type: 'temporal',
  name,
  description: `Does ${name}.`,
  parameters: { type: 'object' },
  task_queue,
  ...runs,
})
const tools = [tool('report', { activity: 'report' }), tool('ship', { workflow: 'wait_and_echo' })]
const tool_calls = [
  { id: 'call_report', name: 'report', arguments: { details: [1, 2, 3, 4] } },
  { id: 'call_ship', name: 'ship', arguments: { ms: 4000 } },
]

afterAll(killProcesses)

describe('a turn whose worker is killed while workers of its organization run its calls', () => {
  it('continues on another one, and each call has run once and has one result', () =>
    withService({ worker: false }, async (service) => {
      const key = newQueueKey()
      expect((await call(service.url, 'PUT', `/v1/task-queues/${task_queue}`, { encryption_key: key })).status).toBe(
        200,
      )
      const worker = await startToolWorker(service, task_queue, key, { workflows: true })
      const killed = await startWorkerProcess(service)
      const id = await createScriptedSession(service.url, [{ tool_calls }, { text: 'Done.' }], { tools })
      const turnId = turnIdOf(await post(service.url, id))
      const child = `tool-${turnId}-1-1`
      await withClient(service, async (client) => {
        const isRunning = async () => (await client.workflow.getHandle(child).describe()).status.name === 'RUNNING'
        await waitFor(async () => worker.runs.length > 0 && (await isRunning().catch(() => false)), 'the calls to run')
        await killed.kill()
        const survivor = await startWorkerProcess(service)
        const events = await waitUntilIdle(service.url, id)
        expectSoundRecord(events)
        const ofCalls = (type: string): Json[] => events.filter((event: Json) => event.type === type)
        expect(ofCalls('tool.started')).toHaveLength(2)
        const results = ofCalls('tool.completed').map(({ data }) => [data.tool_name, data.result[0].text])
        expect(results.toSorted()).toEqual([
          ['report', '"reported"'],
          ['ship', '{"ms":4000,"waited":true}'],
        ])
        expect(worker.runs.map(({ tool }) => tool)).toEqual(['report'])
        expect((await client.workflow.count(`WorkflowId = '${child}'`)).count).toBe(1)
        const own = `(WorkflowId = '${turnId}' OR WorkflowId = '${child}') AND ExecutionStatus = 'Running'`
        const running = async () => (await client.workflow.count(own)).count
        await waitFor(async () => (await running()) === 0, 'all workflows to end')
        await survivor.stop()
      })
      await worker.stop()
    }))
})
