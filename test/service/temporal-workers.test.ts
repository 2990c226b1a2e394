import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { call, createScriptedSession, type Json, waitFor, waitUntilIdle } from '../support/http.ts'
import { whyNoPython } from '../support/python.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { newQueueKey } from '../support/tool-worker.ts'
import { post } from '../support/turns.ts'

const run = promisify(execFile)
const PACKAGES = ['temporalio==1.35.0', 'cryptography==50.0.2']
/** Environment of Python with the packages. It is kept between runs. */
const PYTHON = path.resolve('.data', 'python', PACKAGES.join('+'))
const INSTALL_MS = 240_000

const noPython = whyNoPython()
if (noPython !== undefined) process.stdout.write(`without CI no worker in Python is run: ${noPython}\n`)

let api: Organization
const workers: ChildProcess[] = []
beforeAll(async () => {
  api = await newOrganization()
})
afterAll(() => {
  for (const worker of workers) worker.kill('SIGKILL')
})

/** Registers a task queue and runs the example's worker on it. */
async function startExample(task_queue: string, program: string, args: string[]): Promise<void> {
  const key = newQueueKey()
  expect((await call(api, 'PUT', `/v1/task-queues/${task_queue}`, { encryption_key: key })).status).toBe(200)
  const env = { ...process.env, TASK_QUEUE: task_queue, TASK_QUEUE_KEY: key }
  const worker = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  workers.push(worker)
  let output = ''
  for (const stream of [worker.stdout, worker.stderr]) stream.on('data', (data) => (output += data))
  await waitFor(async () => {
    if (worker.exitCode !== null) throw new Error(output)
    return output.includes(`polls ${task_queue}`)
  }, `${program} to poll`)
}

/** Runs a turn with one call of each tool. Returns their results and progress. */
async function runTurn(tools: object[], args: object[]): Promise<{ results: Json[]; messages: string[] }> {
  const tool_calls = tools.map((tool, index) => ({
    id: `call_${index}`,
    name: (tool as Json).name,
    arguments: args[index],
  }))
  const id = await createScriptedSession(api, [{ tool_calls }, { text: 'Done.' }], { tools })
  await post(api, id)
  const events = await waitUntilIdle(api, id)
  const dataOf = (type: string): Json[] => events.filter((event: Json) => event.type === type).map(({ data }) => data)
  const completed = dataOf('tool.completed').toSorted((a, b) => (a.tool_call_id < b.tool_call_id ? -1 : 1))
  const results = completed.map(({ error, result }) => error ?? JSON.parse(result[0].text))
  return { results, messages: dataOf('tool.progress').map(({ message }) => message) }
}

const tool = (task_queue: string, name: string, more: object) => ({
  type: 'temporal',
  name,
  description: `Does ${name}.`,
  parameters: { type: 'object' },
  task_queue,
  ...more,
})

it('the example in TypeScript runs calls as activities and workflows', async () => {
  const queue = `typescript-${api.uuid}`
  await startExample(queue, process.execPath, ['examples/temporal-worker-typescript/worker.ts'])
  const tools = ['count_stock', 'count_more'].map((name) => tool(queue, name, { activity: 'count_stock' }))
  const shipping = tool(queue, 'ship_order', { workflow: 'ship_order' })
  const order = { order: 'A-1', seconds: 1 }
  const { results, messages } = await runTurn(
    [...tools, shipping],
    [{ article: 'lamp' }, { article: 'unicorn' }, order],
  )
  expect(results).toEqual([
    { article: 'lamp', pieces: 42 },
    'There is no article "unicorn".',
    { order: 'A-1', shipped: true },
  ])
  expect(messages).toContain('shelf 2')
})

const unlessWithoutPython = noPython === undefined || process.env.CI ? it : it.skip
unlessWithoutPython(
  'the example in Python runs calls as activities',
  async () => {
    const python = path.join(PYTHON, 'bin', 'python')
    if (!existsSync(python)) {
      await run('python3', ['-m', 'venv', PYTHON])
      await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES])
    }
    const queue = `python-${api.uuid}`
    await startExample(queue, python, ['examples/temporal-worker-python/worker.py'])
    const tools = ['mean', 'mean_of_none'].map((name) => tool(queue, name, { activity: 'mean' }))
    const { results } = await runTurn(tools, [{ numbers: [1, 2, 6] }, { numbers: [] }])
    expect(results).toEqual([{ mean: 3 }, 'division by zero'])
  },
  INSTALL_MS,
)
