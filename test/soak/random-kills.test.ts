import { setTimeout as sleep } from 'node:timers/promises'
import { call, createScriptedSession, type Json, listEvents, textMessage } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { killProcesses } from '../support/process.ts'
import { createRandom, type Random } from '../support/random.ts'
import { expectSoundRecord, standstillMs, typesOf } from '../support/record.ts'
import { seedsOf } from '../support/seeds.ts'
import { startService, type TestService } from '../support/service.ts'
import { type OpenStream, openStream } from '../support/stream.ts'
import { createWorkerPool, type WorkerPool } from '../support/workers.ts'

const LANES = 6
const KILLS = 50
/** Latest kill, about the length of the turn. Later kills would find it ended. */
const LATEST_KILL_MS = 2300
const CLIENT_TAKES_MS = 200

const THOUGHT = 'I have to add, to divide, to wait and then to ask.'
const TEXT = 'Let me look at all of that, one after the other, and ask you.'
const SECOND_TEXT = 'Now the weather and the rest of it.'
const ANSWER = 'So this is the whole answer, which took two rounds of tools.'
/** Content of many chunks. */
const LARGE = 'large '.repeat(50_000)
/** Rows that one call inserts. */
const FILLED = 1000
const INSERT = 'CREATE TABLE IF NOT EXISTS accepted (call TEXT); INSERT INTO accepted'
const sql = (id: string, values: string) => {
  const args = { database: 'calls', sql: `${INSERT} ${values}` }
  return { id, name: 'sql_execute', arguments: args }
}
const PACE = { tokens_per_second: 50 }
const SCRIPT = [
  {
    ...PACE,
    thinking: THOUGHT,
    text: TEXT,
    tool_calls: [
      { id: 'add', name: 'add', arguments: { a: 1, b: 2 } },
      { id: 'divide', name: 'divide', arguments: { a: 1, b: 0 } },
      { id: 'wait', name: 'wait', arguments: { ms: 200 } },
      { id: 'ask', name: 'ask', arguments: { text: 'Which town?' } },
      // Twice would show.
      { id: 'append', name: 'bash', arguments: { command: 'echo line >> /log; mv /old /new; cat /log' } },
      // Both make the database.
      sql('make', "VALUES ('make')"),
      sql('count', "VALUES ('count')"),
    ],
  },
  {
    ...PACE,
    text: SECOND_TEXT,
    tool_calls: [
      { id: 'weather', name: 'get_weather', arguments: { location: 'Lisbon' } },
      { id: 'pause', name: 'wait', arguments: { ms: 200 } },
      { id: 'edit', name: 'edit_file', arguments: { path: '/plan', old_text: 'go', new_text: 'go and go' } },
      { id: 'write', name: 'write_file', arguments: { path: '/large', content: LARGE } },
      // Of many pages.
      sql(
        'fill',
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${FILLED}) SELECT printf('%.*c', 1000, 'x') FROM n`,
      ),
    ],
  },
  { ...PACE, text: ANSWER },
]
const AGENT = {
  capabilities: ['test_math', 'test_weather', 'virtual_bash', 'session_sql_database', 'lab'].map((ref) => ({ ref })),
  tools: [
    {
      type: 'client_side',
      name: 'ask',
      description: 'Asks the user.',
      parameters: { type: 'object', properties: { text: { type: 'string' } } },
    },
  ],
}
const STATUS_OF_CALLS = [
  ...[
    ['add', 'success'],
    ['append', 'success'],
    ['ask', 'success'],
    ['count', 'success'],
    ['divide', 'error'],
    ['make', 'success'],
    ['wait', 'success'],
  ],
  ...[
    ['edit', 'success'],
    ['fill', 'success'],
    ['pause', 'success'],
    ['weather', 'success'],
    ['write', 'success'],
  ],
]

const reasonTypes = ['reason.started', 'llm.generation', 'output.message.completed', 'reason.completed']
const actTypes = (started: number, completed: number) => [
  'act.started',
  ...Array(started).fill('tool.started'),
  ...Array(completed).fill('tool.completed'),
  'act.completed',
]
/** Event types of the turn, without the types that a repeated step records again. */
const EXPECTED_TYPES = [
  ...['input.message', 'session.started', 'session.activated', 'turn.started'],
  ...[...reasonTypes, 'reason.thinking.started', 'reason.thinking.completed', ...actTypes(6, 7), 'tool.call_requested'],
  ...[...reasonTypes, ...actTypes(5, 5)],
  ...[...reasonTypes, 'turn.completed', 'session.idled'],
].sort()
const REPEATED = ['output.message.started', 'output.message.delta', 'reason.thinking.delta']

type Lane = { service: TestService; pool: WorkerPool }
type Kill = { afterMs: number; at: string; standstillMs: number; hadWork: boolean }

let lanes: Lane[] = []
beforeAll(async () => {
  for (let lane = 0; lane < LANES; lane++) {
    const service = await startService({ worker: false, capabilities: [createLab().capability] })
    lanes.push({ service, pool: createWorkerPool(service, 2) })
  }
  await Promise.all(lanes.map(({ pool }) => pool.fill()))
})
afterAll(async () => {
  await killProcesses()
  for (const { service } of lanes) await service.stop()
  lanes = []
})

async function answerClientCall({ service }: Lane, id: string, stream: OpenStream): Promise<void> {
  await stream.until((frame) => frame.event === 'tool.call_requested')
  // Time for a person to answer, in which a kill finds the turn waiting.
  await sleep(CLIENT_TAKES_MS)
  const tool_results = [{ tool_call_id: 'ask', result: 'Lisbon' }]
  const answered = await call(service.url, 'POST', `/v1/sessions/${id}/tool-results`, { tool_results })
  expect(answered).toMatchObject({ status: 200, body: { accepted: 1, status: 'active' } })
}

/** Kills the worker that runs the turn, or any if none does. Returns the time and the turn's last event then. */
async function killSoon({ pool }: Lane, random: Random, turnId: string, stream: OpenStream) {
  const afterMs = Math.floor(random() * LATEST_KILL_MS)
  // The random moment is what this tests.
  await sleep(afterMs)
  const runner = await pool.findRunner(turnId)
  const workers = pool.list()
  const victim = runner ?? workers[Math.floor(random() * workers.length)]
  if (victim === undefined) throw new Error('there is no worker to kill')
  await pool.kill(victim)
  return { afterMs, killedAt: Date.now(), at: stream.events().at(-1)?.type, hadWork: runner !== undefined }
}

async function playTurn(lane: Lane, random: Random): Promise<Kill> {
  const { service, pool } = lane
  const id = await createScriptedSession(service.url, SCRIPT, AGENT)
  const files = `/v1/sessions/${id}/fs`
  await call(service.url, 'POST', `${files}/plan`, { content: 'go' })
  await call(service.url, 'POST', `${files}/old`, { content: LARGE })
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  const answering = answerClientCall(lane, id, stream)
  const { killedAt, ...kill } = await killSoon(lane, random, body.id.replace('message_', 'turn_'), stream)
  await Promise.all([answering, pool.fill(), stream.until((frame) => frame.event === 'session.idled')])
  stream.close()
  const events = await listEvents(service.url, id)
  expectWholeTurn(events)
  expect(stream.events()).toEqual(events)
  expect(await readAll(service.url, files)).toEqual(EXPECTED_FILES)
  const { tables } = (await call(service.url, 'GET', `/v1/sessions/${id}/databases/calls/schema`)).body
  expect(tables).toMatchObject([{ name: 'accepted', row_count: 2 + FILLED }])
  return { ...kill, standstillMs: standstillMs(events, killedAt) }
}

/** Files after the turn: each change was made once. */
const EXPECTED_FILES = { '/large': LARGE, '/log': 'line\n', '/new': LARGE, '/plan': 'go and go' }

async function readAll(url: string, files: string): Promise<Record<string, string>> {
  const { data } = (await call(url, 'GET', files)).body
  const contents: Record<string, string> = {}
  for (const { path } of data) contents[path] = (await call(url, 'GET', `${files}${path}`)).body.content
  return contents
}

function expectWholeTurn(events: Json[]): void {
  expectSoundRecord(events)
  expect(
    typesOf(events)
      .filter((type) => !REPEATED.includes(type))
      .sort(),
  ).toEqual(EXPECTED_TYPES)
  expect(typesOf(events).slice(-2)).toEqual(['turn.completed', 'session.idled'])
  expect(events.at(-2).data.iterations).toBe(3)
  const results = events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
  const sorted = [results.slice(0, 7), results.slice(7)].map((act) =>
    act.map((result) => [result.tool_call_id, result.status]).sort(),
  )
  expect(sorted.flat()).toEqual(STATUS_OF_CALLS)
  const generations = events.filter(({ type }) => type === 'llm.generation')
  expect(generations.map(({ data }) => data.output.text)).toEqual([TEXT, SECOND_TEXT, ANSWER])
  expect(generations.map(({ data }) => data.messages.length)).toEqual([1, 9, 15])
}

function report(seed: number, kills: Kill[]): void {
  const sorted = kills.map((kill) => kill.standstillMs).sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]
  process.stdout.write(
    `${kills.length} kills, seed ${seed}: standstill p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, max ${at(1)} ms\n`,
  )
  for (const kill of kills) process.stdout.write(`  ${JSON.stringify(kill)}\n`)
}

describe('a turn with tools and a client whose worker is killed at a random moment', () => {
  it.each(seedsOf('kills'))(`completes as if undisturbed, ${KILLS} times (SEED=%i)`, async (seed) => {
    const kills: Kill[] = []
    let begun = 0
    try {
      await Promise.all(
        lanes.map(async (lane, index) => {
          const random = createRandom(seed + index)
          while (begun++ < KILLS) kills.push(await playTurn(lane, random))
        }),
      )
    } finally {
      report(seed, kills)
    }
    expect(kills).toHaveLength(KILLS)
  })
})
