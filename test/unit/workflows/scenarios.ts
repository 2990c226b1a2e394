import type { Retention } from '../../../domain/deps.ts'
import { call, createScriptedSession, type Json, listEvents, textMessage, waitFor } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { startReceiver } from '../../support/receiver.ts'
import type { TestService } from '../../support/service.ts'
import { withClient } from '../../support/temporal.ts'
import { newQueueKey, startToolWorker } from '../../support/tool-worker.ts'

/** Scenario for which a history is kept. `play` returns a workflow's id as soon as the workflow will end by itself. */
export type Scenario = {
  name: string
  play(url: string, service: TestService): Promise<string>
  environment?: Record<string, string>
  /** False: the scenario starts its workers. */
  worker?: boolean
  retention?: Pick<Retention, 'deltasMs'>
}

const schema = { type: 'object', properties: { text: { type: 'string' } } }
const clientTool = { type: 'client_side', name: 'ask_user', description: 'Asks the user.', parameters: schema }
const guardedTool = { type: 'builtin', name: 'echo', description: 'Says it.', parameters: schema }
const lab = { capabilities: [{ ref: 'lab' }] }
const guarded = { ...lab, tools: [{ ...guardedTool, policy: 'requires_approval' }] }
const asking = { ...lab, tools: [clientTool] }

const done = { text: 'Done.' }
const calls = (...names: string[]) => ({
  text: 'Let me see.',
  tool_calls: names.map((name, index) => ({ id: `call_${index}`, name, arguments: { text: name } })),
})

/** Number of steps that, with the limit that the recorder sets in Temporal, continues the turn in a second run. */
const LONG_TURN_STEPS = 6

export const scenarios: Scenario[] = [
  { name: 'plain-turn', play: (url) => playAlone(url, [done]) },
  { name: 'handed-over-turn', play: (url) => playAlone(url, [{ ...done, delay_ms: 4000 }]) },
  { name: 'upgraded-turn', worker: false, play: (url, service) => playUpgraded(url, service) },
  { name: 'failed-turn', play: (url) => playAlone(url, [{ error: { status: 401, message: 'no' } }]) },
  {
    name: 'retried-model-call',
    play: (url) => playAlone(url, [{ ...done, error: { status: 503, message: 'no', times: 1 } }]),
  },
  { name: 'parallel-tools', play: (url) => playAlone(url, [calls('echo', 'wait', 'fail'), done], lab) },
  { name: 'client-tool-answered', play: (url) => playAnswered(url, asking, ['echo', 'ask_user'], { text: 'yes' }) },
  {
    name: 'client-tool-timed-out',
    environment: { CLIENT_TOOL_TIMEOUT: '1' },
    play: (url) => playAlone(url, [calls('ask_user'), done], asking),
  },
  { name: 'question-answered', play: (url) => playAnswered(url, lab, ['echo', 'elicit'], { action: 'decline' }) },
  { name: 'approval-granted', play: (url) => playAnswered(url, guarded, ['echo'], { approved: true }) },
  { name: 'approval-denied', play: (url) => playAnswered(url, guarded, ['echo'], { approved: false }) },
  {
    name: 'temporal-tools',
    play: (url, service) => playTemporalTools(url, service, ['echo', 'fail', 'wait_and_echo']),
  },
  { name: 'cancelled-temporal-tools', play: (url, service) => playTemporalTools(url, service, ['hang', 'wait_long']) },
  {
    name: 'cancelled-model-call',
    play: (url) => playCancelled(url, [{ text: 'la '.repeat(500), tokens_per_second: 20 }]),
  },
  { name: 'cancelled-tool', play: (url) => playCancelled(url, [calls('hang')], lab) },
  { name: 'superseded-while-waiting', play: playSuperseded },
  { name: 'asked-agents', play: (url) => playAsking(url) },
  { name: 'long-turn', play: (url) => playAlone(url, [...Array(LONG_TURN_STEPS).fill(calls('echo')), done], lab) },
  { name: 'execution-completed', play: (url) => playTriggered(url, ACTIVITY) },
  {
    name: 'execution-retried',
    environment: { ALLOW_PRIVATE_NETWORK: 'true' },
    play: (url) => playTriggered(url, UNREACHABLE, { max_attempts: 2, initial_interval_ms: 100 }),
  },
  { name: 'execution-of-a-turn', play: async (url) => playTriggered(url, await messageTo(url, [done])) },
  { name: 'execution-cancelled', play: playCancelledExecution },
  { name: 'launch', play: (url, service) => playLaunched(url, service) },
  { name: 'webhook-retried', environment: { ALLOW_PRIVATE_NETWORK: 'true' }, play: (url) => playWebhook(url) },
  { name: 'retention', retention: { deltasMs: 1000 }, play: (_url, service) => untilScheduled(service) },
]

type Started = { sessionId: string; turnId: string }

async function post(url: string, sessionId: string): Promise<string> {
  await call(url, 'POST', `/v1/sessions/${sessionId}/messages`, textMessage('Go'))
  const { body } = await call(url, 'GET', `/v1/sessions/${sessionId}/turns`)
  return body.data[0].id
}

async function start(url: string, steps: object[], agent: object = {}): Promise<Started> {
  const sessionId = await createScriptedSession(url, steps, agent)
  return { sessionId, turnId: await post(url, sessionId) }
}

async function playAlone(url: string, steps: object[], agent: object = {}): Promise<string> {
  return (await start(url, steps, agent)).turnId
}

/** The agent asks another one twice at once. */
async function playAsking(url: string): Promise<string> {
  const { body: asked } = await call(url, 'POST', '/v1/agents', { name: 'Asked', system_prompt: 'Help.' })
  const asks = { id: 'call_0', name: 'ask_asked', arguments: { message: 'Help.' } }
  return playAlone(url, [{ tool_calls: [asks, { ...asks, id: 'call_1' }] }, done], { capabilities: [asked.id] })
}

const untilEvent = (url: string, sessionId: string, type: string): Promise<Json> =>
  waitFor(async () => (await listEvents(url, sessionId)).find((event) => event.type === type), type)

/** Answers the client's calls, which come last. */
async function playAnswered(url: string, agent: object, names: string[], result: object): Promise<string> {
  const { sessionId, turnId } = await start(url, [calls(...names), done], agent)
  const asked = await untilEvent(url, sessionId, 'tool.call_requested')
  const tool_results = asked.data.tool_calls.map(({ id }: Json) => ({ tool_call_id: id, result }))
  await expectOk(call(url, 'POST', `/v1/sessions/${sessionId}/tool-results`, { tool_results }))
  return turnId
}

async function playCancelled(url: string, steps: object[], agent: object = {}): Promise<string> {
  const { sessionId, turnId } = await start(url, steps, agent)
  await untilEvent(url, sessionId, agent === lab ? 'tool.started' : 'output.message.delta')
  await expectOk(call(url, 'POST', `/v1/sessions/${sessionId}/cancel`, {}))
  return turnId
}

/** A worker of the organization runs activities, and workflows if their names say that they wait. A hanging turn is cancelled. */
async function playTemporalTools(url: string, service: TestService, names: string[]): Promise<string> {
  const [task_queue, key] = ['warehouse', newQueueKey()]
  await expectOk(call(url, 'PUT', `/v1/task-queues/${task_queue}`, { encryption_key: key }))
  const worker = await startToolWorker(service, task_queue, key, { workflows: true })
  const tool = { type: 'temporal', description: 'Does it.', parameters: { type: 'object' }, task_queue }
  const tools = names.map((name) => ({ ...tool, name, [name.startsWith('wait') ? 'workflow' : 'activity']: name }))
  const tool_calls = names.map((name) => ({ id: name, name, arguments: { ms: 500, message: 'no' } }))
  const { sessionId, turnId } = await start(url, [{ tool_calls }, done], { tools })
  if (names.includes('hang')) {
    await untilEvent(url, sessionId, 'tool.progress')
    await expectOk(call(url, 'POST', `/v1/sessions/${sessionId}/cancel`, {}))
  }
  await untilEvent(url, sessionId, 'session.idled').finally(worker.stop)
  return turnId
}

/** A worker that knows no local activity for steps takes the first one, and a worker of this release the second. */
export async function playUpgraded(url: string, service: TestService): Promise<string> {
  const earlier = await service.startWorker('an earlier release')
  const { sessionId, turnId } = await start(url, [calls('ask_user'), done], asking)
  const asked = await untilEvent(url, sessionId, 'tool.call_requested')
  await earlier.stop()
  await service.startWorker()
  const tool_results = asked.data.tool_calls.map(({ id }: Json) => ({ tool_call_id: id, result: 'yes' }))
  await expectOk(call(url, 'POST', `/v1/sessions/${sessionId}/tool-results`, { tool_results }))
  return turnId
}

async function playSuperseded(url: string): Promise<string> {
  const { sessionId, turnId } = await start(url, [calls('ask_user'), done], asking)
  await untilEvent(url, sessionId, 'tool.call_requested')
  await post(url, sessionId)
  return turnId
}

const ACTIVITY = { type: 'activity', name: 'noop' }
const UNREACHABLE = { type: 'activity', name: 'http_request', input: { url: 'http://127.0.0.1:1/' } }
const HOURLY = '0 * * * *'
const EACH_TEN_SECONDS = '*/10 * * * * *'

async function messageTo(url: string, steps: object[]): Promise<object> {
  const session_id = await createScriptedSession(url, steps)
  return { type: 'workflow', name: 'session_message', input: { session_id, message: 'Go' } }
}

async function createSchedule(
  url: string,
  cron_expression: string,
  target: object,
  retry_policy?: object,
): Promise<string> {
  const body = { name: 'Played', cron_expression, target, retry_policy }
  return (await call(url, 'POST', '/v1/durable/schedules', body)).body.id
}

/** Triggers a schedule. Returns the id of its execution, which is its workflow's. */
async function playTriggered(url: string, target: object, retry_policy?: object): Promise<string> {
  const id = await createSchedule(url, HOURLY, target, retry_policy)
  return (await call(url, 'POST', `/v1/durable/schedules/${id}/trigger`)).body.execution_id
}

async function playCancelledExecution(url: string, service: TestService): Promise<string> {
  const slow = await messageTo(url, [{ text: 'la '.repeat(500), tokens_per_second: 20 }])
  const id = await playTriggered(url, slow)
  const turn = `/v1/sessions/${(slow as Json).input.session_id}/turns`
  await waitFor(async () => (await call(url, 'GET', turn)).body.data[0]?.status === 'active' || undefined, 'its turn')
  await withClient(service, (client) => client.workflow.getHandle(id).cancel())
  return id
}

async function playLaunched(url: string, service: TestService): Promise<string> {
  const id = await createSchedule(url, EACH_TEN_SECONDS, ACTIVITY)
  const workflowId = await withClient(service, (client) =>
    waitFor(async () => {
      const described = await client.schedule.getHandle(`schedule-${id}`).describe()
      return described.info.recentActions[0]?.action.workflow.workflowId
    }, 'a launch'),
  )
  await call(url, 'DELETE', `/v1/durable/schedules/${id}`)
  return workflowId
}

/** A receiver fails twice: the first time it is asked again at once, the second time when the workflow's timer ends. */
async function playWebhook(url: string): Promise<string> {
  const receiver = await startReceiver()
  receiver.answer = (response) => response.writeHead(receiver.received.length < 3 ? 500 : 204).end()
  const hook = (await call(url, 'POST', '/v1/webhooks', { url: receiver.url, events: ['turn.completed'] })).body
  const { sessionId } = await start(url, [done])
  const deliveries = `/v1/webhooks/${hook.id}/deliveries`
  const untilAttempts = (count: number): Promise<Json> =>
    waitFor(async () => {
      const [delivery] = (await call(url, 'GET', deliveries)).body.data
      return delivery?.attempts >= count && delivery.last_attempt_at < delivery.next_attempt_at && delivery
    }, `attempt ${count}`)
  const { id } = await untilAttempts(1)
  await expectOk(call(url, 'POST', `${deliveries}/${id}/redeliver`))
  await waitFor(async () => receiver.received.length === 3, 'the third attempt')
  return `${hook.id}/${toUuid(sessionId)}`
}

async function expectOk(answering: Promise<{ status: number; body: Json }>): Promise<void> {
  const { status, body } = await answering
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
}

const untilScheduled = (service: TestService): Promise<string> =>
  withClient(service, (client) =>
    waitFor(async () => {
      const schedule = client.schedule.getHandle(`${service.config.TEMPORAL_TASK_QUEUE}-retention`)
      const described = await schedule.describe().catch(() => undefined)
      return described?.info.recentActions[0]?.action.workflow.workflowId
    }, 'a run of retention'),
  )
