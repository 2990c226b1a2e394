// Compares the previous release's way of recording with this one's. During a rollout, processes of the previous release
// call append_events for sessions in which others call record_events, so both must write the same rows.
// Delete this file together with append_events.

import pg from 'pg'
import { type NewEvent, toStored } from '../../../domain/events/append.ts'
import { actStep, callStep, reasonStep } from '../../../domain/events/steps.ts'
import { DEFAULT_HARNESS_UUID, DEFAULT_ORGANIZATION_UUID, newUuid } from '../../../domain/ids.ts'
import { countOf } from '../../support/counts.ts'
import { cloneDatabase, type TestDatabase } from '../../support/database.ts'
import { createRandom } from '../../support/random.ts'
import { seedsOf } from '../../support/seeds.ts'

let database: TestDatabase
let client: pg.Client
beforeAll(async () => {
  database = await cloneDatabase()
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
})
afterAll(async () => {
  await client.end()
  await database.drop()
})

const BATCHES_PER_SESSION = 14
const BATCHES_PER_ITERATION = 6

/** Source of random choices. */
type Draw = { below(limit: number): number; pick<T>(items: readonly T[]): T }

function createDraw(seed: number): Draw {
  const random = createRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  return { below, pick: <T>(items: readonly T[]): T => items[below(items.length)] as T }
}

const EXEC_ID = newUuid()
const CALLS = { tool_calls: [{ id: 'c1' }, { id: 'c2' }] }
const text = (content: string) => ({ type: 'text', text: content })
const LONG_ANSWER = [text('😀x'.repeat(150)), { type: 'tool_call', id: 'c1', name: 'look', arguments: {} }, text('end')]

const event = (type: NewEvent['type'], step = '', data: NewEvent['data'] = {}): NewEvent =>
  // The events of an answer name the execution that wrote them.
  type.startsWith('output.message.') ? { type, step, data, execId: EXEC_ID } : { type, step, data }

const begin = (iteration: number): NewEvent[] => [
  event('session.started'),
  event('session.activated'),
  event('turn.started'),
  event('reason.started', reasonStep(iteration)),
]
const answer = (iteration: number, content: object[]): NewEvent =>
  event('output.message.completed', reasonStep(iteration), { message: { content } })
const drawUsage = ({ below, pick }: Draw): object | null =>
  pick([
    null,
    { input_tokens: below(9), output_tokens: below(9) },
    { input_tokens: 1, output_tokens: 2, cache_read_tokens: below(5), cache_creation_tokens: pick([null, 3]) },
  ])
const reasoned = (iteration: number, draw: Draw): NewEvent =>
  event('reason.completed', reasonStep(iteration), { usage: drawUsage(draw) })
const ask = (iteration: number): NewEvent => event('tool.call_requested', actStep(iteration), CALLS)
const result = (iteration: number, callId: string): NewEvent =>
  event('tool.completed', callStep(iteration, callId), { success: true })
const results = (iteration: number): NewEvent[] => ['c1', 'c2'].map((callId) => result(iteration, callId))

/** Makers of batches, by name. They are drawn in any order, so most sessions do what no real one does. */
const BATCHES: Record<string, (iteration: number, draw: Draw) => NewEvent[]> = {
  beginning: (iteration) => [...begin(iteration), event('output.message.started', reasonStep(iteration))],
  delta: (iteration) => [event('output.message.delta', reasonStep(iteration), { delta: 'a' })],
  'answer with calls': (iteration, draw) => [
    answer(iteration, draw.pick([[], [text('')], LONG_ANSWER])),
    reasoned(iteration, draw),
    event('act.started', actStep(iteration), CALLS),
    ask(iteration),
  ],
  request: (iteration) => [ask(iteration)],
  'first result': (iteration) => [result(iteration, 'c1')],
  approval: (iteration) => [event('tool.started', callStep(iteration, 'c2'))],
  'both results': (iteration) => [
    ...results(iteration),
    event('act.completed', actStep(iteration)),
    event('reason.started', reasonStep(iteration + 1)),
  ],
  usage: (iteration, draw) => [reasoned(iteration, draw)],
  'results and cancellation': (iteration) => [...results(iteration), event('turn.cancelled', '', { reason: 'client' })],
  cancellation: () => [event('turn.cancelled', '', { reason: 'client' }), event('session.idled')],
  failure: (iteration) => [
    ...begin(iteration),
    result(iteration, 'c2'),
    event('reason.completed', reasonStep(iteration), { success: false, error: 'No answer.' }),
    event('turn.failed', '', { error: 'It broke.', error_code: 'llm_error' }),
    event('session.idled'),
  ],
  'final answer': (iteration, draw) => [
    answer(iteration, [text('Done.')]),
    reasoned(iteration, draw),
    event('turn.completed', '', { usage: drawUsage(draw) }),
    event('session.idled'),
  ],
}

/** Batch for the turn at a place of the queue, written by an attempt of a step or without one. */
type Batch = { name: string; place: number; attempt?: { step: string; fence: number }; events: NewEvent[] }

/** Draws a batch. The later it is, the later are its iteration and most often its turn. */
function drawBatch(draw: Draw, index: number, turnCount: number): Batch {
  const iteration = 1 + Math.floor(index / BATCHES_PER_ITERATION)
  const inOrder = Math.floor((index * turnCount) / BATCHES_PER_SESSION)
  const place = draw.pick([inOrder, inOrder, draw.below(turnCount)])
  const attempt = draw.pick([undefined, { step: reasonStep(iteration), fence: 1 + draw.below(3) }])
  const [name, make] = draw.pick(Object.entries(BATCHES))
  return { name, place, attempt, events: make(iteration, draw) }
}

type Twin = { agentId: string; sessionId: string; turnIds: string[] }

/** Creates a session with queued turns, and its agent. A session with several turns has been idle before. */
async function createTwin(turnCount: number): Promise<Twin> {
  const twin = { agentId: newUuid(), sessionId: newUuid(), turnIds: Array.from({ length: turnCount }, newUuid) }
  await client.query(
    `WITH agent AS (
      INSERT INTO agents (organization_id, id, name, system_prompt, updated_at) VALUES ($1, $2, 'Twin', '', now())
    ), session AS (
      INSERT INTO sessions (organization_id, agent_id, id, harness_id, last_sequence, finished_at, updated_at)
      SELECT $1, $2, $3, $4, turns, CASE WHEN turns > 1 THEN now() END, now() FROM cardinality($5::uuid[]) AS turns
    )
    INSERT INTO turns (organization_id, session_id, id, input_sequence)
    SELECT $1, $3, turn.id, turn.place FROM unnest($5::uuid[]) WITH ORDINALITY AS turn (id, place)`,
    [DEFAULT_ORGANIZATION_UUID, twin.agentId, twin.sessionId, DEFAULT_HARNESS_UUID, twin.turnIds],
  )
  return twin
}

/** Result of a function and all rows after it, without what differs between twins. Only fields used here are listed. */
type Written = {
  result: { outcome: string; events?: unknown[]; next_turn_id?: string | null }
  rows: { session: { status: string }; turns: { status: string; notice_due_at: boolean }[] }
}

/** The release before knew no `last_turn_status`. */
const ROWS = `SELECT jsonb_build_object(
  'session', (SELECT to_jsonb(s) - 'last_turn_status' FROM sessions s WHERE id = $1),
  'turns', (SELECT jsonb_agg(t ORDER BY input_sequence) FROM turns t WHERE session_id = $1),
  'agent', (SELECT to_jsonb(a) FROM agents a WHERE id = (SELECT agent_id FROM sessions WHERE id = $1)),
  'events', (SELECT jsonb_agg(e ORDER BY sequence) FROM events e WHERE session_id = $1),
  'steps', (SELECT jsonb_agg(p ORDER BY input_sequence, step)
    FROM turn_steps p JOIN turns t ON t.id = p.turn_id WHERE session_id = $1)
) AS rows`

async function write(name: 'append_events' | 'record_events', twin: Twin, batch: Batch): Promise<Written> {
  const { step, fence } = batch.attempt ?? { step: null, fence: null }
  const stored = toStored(batch.events)
  const events = name === 'record_events' ? stored : withoutAnnouncements(stored)
  const input = [twin.sessionId, twin.turnIds[batch.place], step, fence, events]
  const called = await client.query(`SELECT ${name}($1, $2, $3, $4, $5) AS result`, input)
  const read = await client.query(ROWS, [twin.sessionId])
  return normalize(twin, { ...called.rows[0], ...read.rows[0] })
}

/** Returns p_events as the previous release sends it. */
const withoutAnnouncements = (stored: string): string =>
  JSON.stringify(JSON.parse(stored), (key, value) => (key === 'announces' ? undefined : value))

/** Replaces ids by names, and times by whether they are set. */
function normalize(twin: Twin, written: object): Written {
  const names = new Map(twin.turnIds.map((id, place) => [id, `turn ${place}`]))
  names.set(twin.sessionId, 'session').set(twin.agentId, 'agent')
  let json = JSON.stringify(written)
  for (const [id, name] of names) json = json.replaceAll(id, name)
  return JSON.parse(json, (key, value) => (key === 'ts' || key.endsWith('_at') ? value !== null : value))
}

/** Cases without which the comparison proves too little. */
const CASES = [
  ...['appended', 'not_next', 'fenced', 'turn_ended'].map((outcome) => `outcome ${outcome}`),
  ...['started', 'active', 'waitingfortoolresults', 'idle'].map((status) => `session ${status}`),
  ...['queued', 'active', 'waiting', 'completed', 'failed', 'cancelled'].map((status) => `turn ${status}`),
  ...Object.keys(BATCHES).map((name) => `${name} recorded`),
  'next turn',
  'notice due',
]

function casesOf({ name }: Batch, { result, rows }: Written): string[] {
  const cases = [`outcome ${result.outcome}`, `session ${rows.session.status}`]
  if (result.events?.length) cases.push(`${name} recorded`)
  if (result.next_turn_id) cases.push('next turn')
  if (rows.turns.some((turn) => turn.notice_due_at)) cases.push('notice due')
  return [...cases, ...rows.turns.map(({ status }) => `turn ${status}`)]
}

/** Writes the same batches to two sessions, each with its function, and returns the cases that occurred. */
async function compareTwins(draw: Draw): Promise<string[]> {
  const turnCount = 1 + draw.below(3)
  const older = await createTwin(turnCount)
  const newer = await createTwin(turnCount)
  const cases: string[] = []
  for (let index = 0; index < BATCHES_PER_SESSION; index++) {
    const batch = drawBatch(draw, index, turnCount)
    const expected = await write('append_events', older, batch)
    expect({ batch, ...(await write('record_events', newer, batch)) }).toEqual({ batch, ...expected })
    cases.push(...casesOf(batch, expected))
  }
  return cases
}

describe('append_events of the previous release', () => {
  it.each(seedsOf('recordedBatches'))('writes the same as record_events (SEED=%i)', async (seed) => {
    const draw = createDraw(seed)
    const cases = new Set<string>()
    for (let count = 0; count < countOf('recordedBatches'); count += BATCHES_PER_SESSION) {
      for (const each of await compareTwins(draw)) cases.add(each)
    }
    expect([...cases].sort()).toEqual(CASES.toSorted())
  })
})
