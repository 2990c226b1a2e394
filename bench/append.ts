import type { RunningServices } from '../dev/services/index.ts'
import type { Deps } from '../domain/deps.ts'
import { type NewEvent, recordEvents } from '../domain/events/log/append.ts'
import { readConfig } from '../platform/config.ts'
import { createLog } from '../platform/log.ts'
import { buildPlatform } from '../platform/wiring/build.ts'
import { goal, print } from './report.ts'
import { type BenchSession, insertSessions } from './sse-sessions.ts'
import { percentile } from './statistics.ts'

const TURNS = 500
const WARM_UP = 50
const MAX_RATIO = 2.5
const STEP = 'reason:1'
const TEXT = 'some twenty tokens of an answer, as they come in a tenth of a second of a model that writes at its pace. '

/** Appends a batch of a turn's events. */
type Append = (session: BenchSession, events: NewEvent[], attempt: { step: string; fence: number }) => Promise<void>

/**
 * Times the four appends of a plain turn, 2,000 in all, and statements that only number and insert the same events.
 * Alternates between the two, turn by turn, so that both see the same machine. Prints both and the goal.
 */
export async function benchAppend(services: RunningServices): Promise<boolean> {
  const { databaseUrl, redisUrl, temporalAddress } = services
  const environment = { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, TEMPORAL_ADDRESS: temporalAddress }
  const platform = await buildPlatform(readConfig({ ...process.env, ...environment }), createLog('warn', 'bench'))
  try {
    const [inserts, appends] = await timeInTurn(platform.deps, [insertOnly(platform.deps), append(platform.deps)])
    const [floor, whole] = [median(inserts), median(appends)]
    print(`p50 of a plain turn's four appends in ms: inserts ${floor.toFixed(2)}, appends ${whole.toFixed(2)}`)
    return goal(whole / floor <= MAX_RATIO, `within ${MAX_RATIO} times of the inserts: ${(whole / floor).toFixed(2)}`)
  } finally {
    await platform.close()
  }
}

const median = (samples: number[] = []): number => percentile(samples, 0.5)

const append =
  (deps: Deps): Append =>
  async ({ id, turnId }, events, attempt) => {
    const { outcome } = await recordEvents(deps, deps.db, { sessionId: id, turnId, attempt }, events)
    if (outcome !== 'appended') throw new Error(outcome)
  }

const insertOnly =
  (deps: Deps): Append =>
  async ({ id, turnId }, events) => {
    await deps.db.$executeRaw`
      WITH session AS (
        UPDATE sessions SET last_sequence = last_sequence + ${events.length}, updated_at = now() WHERE id = ${id}::uuid
        RETURNING id, last_sequence - ${events.length} AS before
      )
      INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
      SELECT id, before + place, e ->> 'type', clock_timestamp(), ${turnId}::uuid, coalesce(e ->> 'step', ''),
        (e ->> 'execId')::uuid, e -> 'data'
      FROM session, jsonb_array_elements(${JSON.stringify(events)}::jsonb) WITH ORDINALITY AS of (e, place)`
  }

async function timeInTurn(deps: Deps, ways: Append[]): Promise<number[][]> {
  const times: number[][] = ways.map(() => [])
  const sessions = await insertSessions(deps, (WARM_UP + TURNS) * ways.length)
  for (const [index, session] of sessions.entries()) {
    const way = ways[index % ways.length]
    const startedAt = performance.now()
    for (const events of batchesOf(session)) await way?.(session, events, { step: STEP, fence: 1 })
    if (index >= WARM_UP * ways.length) times[index % ways.length]?.push(performance.now() - startedAt)
  }
  return times
}

/** The events of a plain turn as its appends group them, with data of the usual size. */
function batchesOf({ execId }: BenchSession): NewEvent[][] {
  const usage = { input_tokens: 200, output_tokens: 200, cache_read_tokens: 0, cache_creation_tokens: 0 }
  const own = (type: NewEvent['type'], data: Record<string, unknown>): NewEvent => ({ type, step: STEP, execId, data })
  const delta = own('output.message.delta', { delta: TEXT })
  const message = { id: 'message_x', role: 'agent', content: [{ type: 'text', text: TEXT.repeat(3) }] }
  const metadata = { model: 'llmsim-default', success: true, duration_ms: 1000, usage }
  return [
    [
      { type: 'session.started', data: { harness_id: 'harness_x', agent_id: null } },
      { type: 'session.activated', data: { turn_id: 'turn_x', input_message_id: 'message_x' } },
      { type: 'turn.started', data: { turn_id: 'turn_x', input_message_id: 'message_x', input_content: TEXT } },
      own('reason.started', { harness_id: 'harness_x', agent_id: null, metadata: { model: 'llmsim-default' } }),
      own('output.message.started', { turn_id: 'turn_x', model: 'llmsim-default' }),
    ],
    [delta],
    [delta],
    [
      delta,
      own('llm.generation', { tools: [], output: { text: TEXT.repeat(3) }, metadata }),
      own('output.message.completed', { message, usage }),
      own('reason.completed', { success: true, has_tool_calls: false, tool_call_count: 0, duration_ms: 1000, usage }),
      { type: 'turn.completed', data: { turn_id: 'turn_x', iterations: 1, duration_ms: 1000, usage } },
      { type: 'session.idled', data: { turn_id: 'turn_x', iterations: 1, usage } },
    ],
  ]
}
