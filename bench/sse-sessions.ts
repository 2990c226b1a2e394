import type { Deps } from '../domain/deps.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../domain/kit/ids.ts'

/** Session with a running turn, without the events that led to it; ids are uuids. */
export type BenchSession = { id: string; turnId: string; execId: string }

const HARNESS = '01933b5a-0000-7000-8000-000000000601'

export async function insertSessions(deps: Deps, count: number): Promise<BenchSession[]> {
  const sessions = Array.from({ length: count }, () => ({ id: newUuid(), turnId: newUuid(), execId: newUuid() }))
  const organizationId = DEFAULT_ORGANIZATION_UUID
  await deps.db.session.createMany({
    data: sessions.map(({ id }) => ({ id, organizationId, harnessId: HARNESS, status: 'active' as const })),
  })
  await deps.db.turn.createMany({
    data: sessions.map(({ id, turnId }) => ({
      id: turnId,
      organizationId,
      sessionId: id,
      inputSequence: 0,
      status: 'active' as const,
      startedAt: new Date(),
    })),
  })
  return sessions
}

/** Number of events of a plain turn, including its deltas. */
const EVENTS_PER_TURN = 20
const DELTAS = 10
/** Number of turns in the input of a model call, as for a model with a small context. */
const TURNS_IN_CONTEXT = 25

/**
 * Inserts a session of `events` events in whole plain turns, without the service: an hour of appends would show nothing
 * more. `text` is what a delta carries. Returns the session's id.
 */
export async function insertLongSession(deps: Deps, events: number, text: string): Promise<string> {
  const [session] = await insertSessions(deps, 1)
  if (session === undefined) throw new Error('no session')
  const turns = events / EVENTS_PER_TURN
  const message = (role: string, content: string) => ({ message: { role, content: [{ type: 'text', text: content }] } })
  const metadata = { model: 'llmsim-default', model_id: 'model_01933b5a000070008000000000000101' }
  const usage = { input_tokens: 200, output_tokens: 200 }
  const data: Record<string, object> = {
    'input.message': message('user', text),
    'session.activated': { turn_id: 'turn_x', input_message_id: 'message_x' },
    'turn.started': { turn_id: 'turn_x', input_message_id: 'message_x', input_content: text },
    'reason.started': { harness_id: 'harness_x', agent_id: null, metadata },
    'output.message.started': { turn_id: 'turn_x', model: 'llmsim-default' },
    'output.message.delta': { delta: text },
    'llm.generation': {
      tools: [],
      output: { text: text.repeat(DELTAS), tool_calls: [] },
      metadata: { model: 'llmsim-default', success: true, duration_ms: 1000, usage },
    },
    'output.message.completed': { ...message('agent', text.repeat(DELTAS)), metadata, usage },
    'reason.completed': { success: true, has_tool_calls: false, tool_call_count: 0, duration_ms: 1000, usage },
    'turn.completed': { turn_id: 'turn_x', iterations: 1, duration_ms: 1000, usage },
    'session.idled': { turn_id: 'turn_x', iterations: 1, usage },
  }
  const types = Object.keys(data).flatMap((type) => Array(type === 'output.message.delta' ? DELTAS : 1).fill(type))
  const steps = types.map((type) => (/^(reason|output|llm)/.test(type) ? 'reason:1' : ''))
  await deps.db.$executeRaw`
    INSERT INTO turns (id, organization_id, session_id, input_sequence, status, started_at, finished_at)
    SELECT gen_random_uuid(), ${DEFAULT_ORGANIZATION_UUID}::uuid, ${session.id}::uuid, turn * ${EVENTS_PER_TURN}::int + 1,
      'completed', now(), now()
    FROM generate_series(0, ${turns}::int - 1) AS turn`
  await deps.db.$executeRaw`
    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    SELECT t.session_id, t.input_sequence + e.place - 1, e.type, now(), t.id, e.step,
      CASE WHEN e.step = '' THEN NULL ELSE t.id END,
      CASE WHEN e.type <> 'llm.generation' THEN ${data}::jsonb -> e.type
        ELSE ${data}::jsonb -> e.type || jsonb_build_object('thresholds', jsonb_build_object('clearedBefore', 0,
          'droppedBefore', greatest(0, t.input_sequence - ${TURNS_IN_CONTEXT * EVENTS_PER_TURN}::int))) END
    FROM turns t CROSS JOIN unnest(${types}::text[], ${steps}::text[]) WITH ORDINALITY AS e (type, step, place)
    WHERE t.session_id = ${session.id}::uuid AND t.input_sequence > 0`
  await deps.db.session.update({ where: { id: session.id }, data: { lastSequence: events } })
  await deps.db.$executeRaw`ANALYZE events, turns`
  return session.id
}
