import { cancelAtOnce, workflowEnd } from '../support/cancelling.ts'
import { call, createScriptedSession, expectError, type Json, waitFor, waitUntilIdle } from '../support/http.ts'
import { expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { readable, withClient } from '../support/temporal.ts'
import { newQueueKey, startToolWorker, type ToolWorker } from '../support/tool-worker.ts'
import { post, postAndAsk, submit, turnIdOf } from '../support/turns.ts'

/** The key of the queue, and a text that may be nowhere in Temporal. */
const KEY = newQueueKey()
const SECRET = 'the-whole-secret'

let api: Organization
let queue: string
let worker: ToolWorker
beforeAll(async () => {
  api = await newOrganization()
  queue = `tools-${api.uuid}`
  expect((await register(api, queue, KEY)).status).toBe(200)
  expect((await register(api, `${queue}-x`, KEY)).status).toBe(200)
  worker = await startToolWorker({}, queue, KEY, { workflows: true })
})
afterAll(() => worker.stop())

const register = (target: Organization, name: string, key: string) =>
  call(target, 'PUT', `/v1/task-queues/${name}`, { encryption_key: key })

const tool = (name: string, more: object = {}) => ({
  type: 'temporal',
  name,
  description: `Does ${name}.`,
  parameters: { type: 'object' },
  task_queue: queue,
  ...('workflow' in more ? {} : { activity: name }),
  ...more,
})

/** A call, its tool's other fields, and its arguments. */
type Called = [name: string, more?: object, args?: object]

const createSession = (...called: Called[]): Promise<string> => createSessionOf({}, ...called)

async function createSessionOf(agent: object, ...called: Called[]): Promise<string> {
  const tool_calls = called.map(([name, , args = {}], index) => ({
    id: `call_${String(index).padStart(2, '0')}`,
    name,
    arguments: args,
  }))
  const tools = [...new Map(called.map(([name, more]) => [name, tool(name, more)])).values()]
  return createScriptedSession(api, [{ text: 'So.', tool_calls }, { text: 'Done.' }], { tools, ...agent })
}

type Ran = { events: Json[]; results: Json[]; turnId: string }

async function run(...called: Called[]): Promise<Ran> {
  const id = await createSession(...called)
  await post(api, id)
  return finish(id)
}

async function finish(id: string): Promise<Ran> {
  const events = await waitUntilIdle(api, id)
  expectSoundRecord(events)
  const completed = events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
  const inOrder = completed.toSorted((a, b) => (a.tool_call_id < b.tool_call_id ? -1 : 1))
  const results = inOrder.map(({ status, result, error }) => [status, error ?? JSON.parse(result[0].text)])
  return { events, results, turnId: events.find(({ type }) => type === 'turn.started')?.data.turn_id }
}

/** Everything that Temporal keeps of a turn, as text. */
const historyOf = (turnId: string): Promise<string> =>
  withClient({}, async (client) => {
    const handle = client.workflow.getHandle(turnId)
    return readable([(await handle.fetchHistory()).events, (await handle.describe()).raw])
  })

describe('task queues', () => {
  it('are registered, listed without their keys, given another key, and removed', async () => {
    const name = `own-${api.uuid}`
    const { status, body } = await register(api, name, newQueueKey())
    expect([status, body]).toEqual([200, { name, created_at: expect.any(String), updated_at: expect.any(String) }])
    const again = await register(api, name, newQueueKey())
    expect(again.body).toEqual({ ...body, updated_at: again.body.updated_at })
    const names = (await call(api, 'GET', '/v1/task-queues')).body.data.map((one: Json) => one.name)
    expect(names).toEqual(expect.arrayContaining([name, queue]))
    expect(names).toEqual(names.toSorted())
    expect((await call(api, 'DELETE', `/v1/task-queues/${name}`)).status).toBe(204)
    expectError(await call(api, 'DELETE', `/v1/task-queues/${name}`), 404, 'Task queue not found')
  })

  it.each([
    ['a name with a slash, as queues of processes have', 'agents%2Fabc', undefined, /task_queue: must be 1 to 128/],
    ["a queue of Temporal's own", 'temporal-sys-per-ns-tq', undefined, /is a queue of the service itself/],
    ['a short key', 'short', 'c2hvcnQ=', /^encryption_key: must be 32 random bytes in base64/],
  ])('are refused: %s', async (_, name, key, message) => {
    expectError(await register(api, name, key ?? newQueueKey()), 400, message)
  })

  it('cannot be named by another organization', async () => {
    const other = await newOrganization()
    const agent = { name: 'A', system_prompt: 'Hi.', tools: [tool('echo')] }
    const refused = await call(other, 'POST', '/v1/agents', agent)
    expectError(refused, 400, /^tools.0.task_queue: no such task queue is registered; GET \/v1\/task-queues lists/)
    const unknown = { ...agent, tools: [tool('echo', { task_queue: 'nowhere' })] }
    expect((await call(other, 'POST', '/v1/agents', unknown)).body).toEqual(refused.body)
    expectError(await call(other, 'POST', '/v1/sessions', { tools: [tool('echo')] }), 400, /^tools.0.task_queue/)
    // With a key of its own it may: the workers do not run what they cannot decrypt, see below.
    expect((await register(other, queue, newQueueKey())).status).toBe(200)
  })
})

describe('the definition of a tool on a worker', () => {
  it.each([
    ['without activity and workflow', { activity: undefined }, /^tools.0.activity: one of activity and workflow/],
    ['with both', { workflow: 'w', activity: 'a' }, /^tools.0.activity: one of activity and workflow/],
    ['with a longer activity', { timeout_seconds: 86_401 }, /^tools.0.timeout_seconds: must be at most 86400/],
    ['with heartbeats of a workflow', { workflow: 'w', heartbeat_seconds: 1 }, /^tools.0.heartbeat_seconds: is for/],
    ['with many attempts', { retry: { maximum_attempts: 21 } }, /^tools.0.retry.maximum_attempts/],
    ['with the approval of other services', { needs_approval: true }, /^tools.0.needs_approval: is not supported/],
    ["with a capability's name", { name: 'get_current_time' }, /^tools.0.name: "get_current_time" is a tool of/],
  ])('is refused %s', async (_, more, message) => {
    const agent = { name: 'A', system_prompt: 'Hi.', capabilities: ['current_time'], tools: [tool('echo', more)] }
    expectError(await call(api, 'POST', '/v1/agents', agent), 400, message)
  })

  it('is kept and shown as it was given, and previewed', async () => {
    const tools = [tool('echo', { timeout_seconds: 5, retry: { maximum_attempts: 2 }, policy: 'requires_approval' })]
    const created = await call(api, 'POST', '/v1/agents', { name: 'A', system_prompt: 'Hi.', tools })
    expect(created.body.tools).toEqual(tools)
    const preview = await call(api, 'POST', '/v1/agents/preview', { system_prompt: 'Hi.', tools })
    expect(preview.body.tools).toMatchObject([{ type: 'temporal', name: 'echo', task_queue: queue }])
  })
})

describe('a call on a worker', () => {
  it('runs once as an activity or a child workflow, and nothing of it can be read in Temporal', async () => {
    const { results, events, turnId } = await run(
      ['echo', {}, { text: SECRET }],
      ['slow_echo', { workflow: 'wait_and_echo' }, { ms: 500, text: SECRET }],
      ['fail', {}, { message: SECRET }],
      ['throw_custom', {}, { message: SECRET }],
      ['break_down', { workflow: 'break_down' }, { message: SECRET }],
    )
    expect(results).toEqual([
      ['success', { text: SECRET }],
      ['success', { ms: 500, text: SECRET, waited: true }],
      ['error', SECRET],
      ['error', SECRET],
      ['error', SECRET],
    ])
    expect(worker.runs.filter(({ args }) => JSON.stringify(args).includes(SECRET))).toHaveLength(3)
    const text = await historyOf(turnId)
    expect(text).toContain('tool · slow_echo')
    expect(text).not.toContain(SECRET)
    const started = events.filter(({ type }) => type === 'tool.started').map(({ data }) => data.tool_call.name)
    expect(started.toSorted()).toEqual(['break_down', 'echo', 'fail', 'slow_echo', 'throw_custom'])
  })

  it('gets an error that the model can read when the worker misbehaves', async () => {
    const { results } = await run(
      ['nothing'],
      ['bytes'],
      ['large', {}, { mib: 1 }],
      ['throw_text'],
      ['throw_huge', {}, { characters: 200_000 }],
      ['throw_more', { activity: 'throw_huge', timeout_seconds: 3 }, { characters: 3_000_000 }],
      ['throw_cancelled'],
      ['unheard_of', { activity: 'unheard_of' }],
      ['silent', { timeout_seconds: 1 }],
      ['quiet', { activity: 'silent', heartbeat_seconds: 1 }],
      ['unpolled', { task_queue: `${queue}-x`, schedule_to_start_seconds: 1 }],
      ['unpolled_flow', { task_queue: `${queue}-x`, workflow: 'any', schedule_to_start_seconds: 1 }],
      ['flaky', { retry: { maximum_attempts: 3, initial_interval_seconds: 1 } }],
      ['three', { activity: 'large', timeout_seconds: 30 }, { mib: 3 }],
      ['five', { activity: 'large', timeout_seconds: 3 }, { mib: 5 }],
    )
    const isUnread = 'The answer of the worker is not JSON.'
    const most = 'at most 1048576'
    expect(results).toEqual([
      ['success', null],
      ['error', isUnread],
      ['error', `The result has 1048578 bytes; ${most} can be given back.`],
      ['error', 'only a text'],
      ['error', 'n'.repeat(4096)],
      ['timeout', 'The tool had no result within 3 s.'],
      ['error', 'nobody asked'],
      ['error', expect.stringMatching(/^Activity function unheard_of is not registered/)],
      ['timeout', 'The tool had no result within 1 s.'],
      ['timeout', 'The worker was not heard of for 1 s.'],
      ['error', `No worker took the call from the task queue "${queue}-x" within 1 s.`],
      ['error', `No worker took the call from the task queue "${queue}-x" within 1 s.`],
      ['success', 3],
      ['error', `The result is too large; ${most} bytes can be given back.`],
      // Temporal does not even take the message in which a worker returns them.
      ['timeout', 'The tool had no result within 3 s.'],
    ])
  })

  it('runs at most 16 times for one answer', async () => {
    const { results } = await run(...Array.from({ length: 17 }, (): Called => ['echo']))
    const more = 'One answer can have 16 calls of such tools; repeat this call in the next.'
    expect(results).toEqual([...Array(16).fill(['success', {}]), ['error', more]])
  })

  it('tells its heartbeats as progress, the same ones once', async () => {
    const details = ['looks', { progress: 7, total: 9, message: 'finds' }, { progress: 7 }, { other: 'thing' }]
    const { results, events } = await run(['report', {}, { details }])
    expect(results).toEqual([['success', 'reported']])
    const progress = events.filter(({ type }) => type === 'tool.progress').map(({ data }) => data)
    const call = { turn_id: expect.stringMatching(/^turn_/), tool_call_id: 'call_00' }
    expect(progress).toEqual([
      { ...call, progress: 1, message: 'looks' },
      { ...call, progress: 7, total: 9, message: 'finds' },
      { ...call, progress: 8, message: '{"other":"thing"}' },
    ])
  })

  it.each([
    ['another key', newQueueKey()],
    ['no encryption', undefined],
  ])('is not run by a worker with %s', async (_, key) => {
    const name = `other-${newQueueKey().replace(/\W/g, '')}`
    expect((await register(api, name, KEY)).status).toBe(200)
    const other = await startToolWorker({}, name, key)
    const { results } = await run(['echo', { task_queue: name }]).finally(other.stop)
    expect(results).toEqual([
      [
        'error',
        expect.stringMatching(
          /^The answer of the worker cannot be decrypted|^Unknown encoding: binary\/encrypted|parse/,
        ),
      ],
    ])
    expect(other.runs).toEqual([])
  })

  it('fails while its task queue is not registered, and its agent can be changed all the same', async () => {
    const name = `gone-${api.uuid}`
    expect((await register(api, name, KEY)).status).toBe(200)
    const id = await createSession(['echo', { task_queue: name }])
    expect((await call(api, 'DELETE', `/v1/task-queues/${name}`)).status).toBe(204)
    const { agent_id } = (await call(api, 'GET', `/v1/sessions/${id}`)).body
    const { tools } = (await call(api, 'GET', `/v1/agents/${agent_id}`)).body
    expect((await call(api, 'PATCH', `/v1/agents/${agent_id}`, { name: 'B', tools })).status).toBe(200)
    await post(api, id)
    const { results } = await finish(id)
    expect(results).toEqual([['error', `The task queue "${name}" is not registered, or its key is unreadable.`]])
  })

  it('does not age its turn', async () => {
    const waiting: Called = ['wait', { workflow: 'wait_and_echo' }, { ms: 3500 }]
    const id = await createSessionOf({ limits: { max_turn_seconds: 3 } }, waiting)
    await post(api, id)
    const { events } = await finish(id)
    expect(events.at(-2)).toMatchObject({ type: 'turn.completed', data: { iterations: 2 } })
  })

  it('waits for approval if its tool says so, and is not run when the tool was replaced meanwhile', async () => {
    const guarded = { policy: 'requires_approval' }
    const ids = [await createSession(['echo', guarded]), await createSession(['echo', guarded])]
    const [kept = '', replaced = ''] = ids
    for (const id of ids) await postAndAsk(api, id)
    const tools = [tool('echo', { ...guarded, activity: 'nothing' })]
    expect((await call(api, 'PATCH', `/v1/sessions/${replaced}`, { tools })).status).toBe(200)
    for (const id of ids) await submit(api, id, [{ tool_call_id: 'call_00', result: { approved: true } }])
    expect((await finish(kept)).results).toEqual([['success', {}]])
    const refusal = 'The tool has changed, or waits for approval now; call it again.'
    expect((await finish(replaced)).results).toEqual([['error', refusal]])
  })
})

describe('a cancelled turn', () => {
  it.each<Called>([
    ['hang', {}],
    ['wait_long', { workflow: 'wait_long' }],
    ['never_end', { workflow: 'never_end' }],
  ])('leaves nothing running of %s', async (name, more = {}) => {
    const id = await createSession([name, more])
    const turnId = turnIdOf(await post(api, id))
    const isActivity = !('workflow' in more)
    const place = `tool-${turnId}-1-0`
    await withClient({}, async (client) => {
      const child = client.workflow.getHandle(place)
      const hasBegun = async () =>
        isActivity ? worker.runs.some(({ tool }) => tool === name) : (await child.describe()).historyLength > 4
      await waitFor(() => hasBegun().catch(() => false), `${name} to run`)
      await cancelAtOnce(api, id)
      expect(await workflowEnd({}, turnId)).toBe('CANCELLED')
      const running = `(WorkflowId = '${turnId}' OR WorkflowId = '${place}') AND ExecutionStatus = 'Running'`
      await waitFor(async () => (await client.workflow.count(running)).count === 0, 'the workflows to end')
    })
    if (!isActivity) return
    await waitFor(
      async () => worker.runs.find(({ tool }) => tool === name)?.ended === 'cancelled',
      'the end of the run',
    )
  })
})
