import type { Deps } from '../../domain/deps.ts'
import { newUuid } from '../../domain/kit/ids.ts'
import { toUuid } from './ids.ts'

/**
 * Inserts turns that ended two hours ago directly into the record, for tests that need tens of thousands of events.
 * Each turn has the given number of steps and deltas. The events have no content.
 */
export async function insertOldTurns(
  { db }: Deps,
  sessionId: string,
  { turns, steps, deltas }: { turns: number; steps: number; deltas: number },
): Promise<void> {
  const id = toUuid(sessionId)
  const ids = Array.from({ length: turns }, () => newUuid())
  // Events of a step: reason.started, output.message.started, the deltas, output.message.completed, reason.completed.
  const stepSize = deltas + 4
  const size = steps * stepSize + 3
  const { organizationId, lastSequence } = await db.session.findUniqueOrThrow({ where: { id } })
  await db.$executeRaw`
    INSERT INTO turns (id, organization_id, session_id, input_sequence, status, started_at, finished_at)
    SELECT turn.id, ${organizationId}::uuid, ${id}::uuid, ${lastSequence}::int + (turn.place - 1) * ${size}::int + 1,
      'completed', now() - interval '2 hours', now() - interval '2 hours'
    FROM unnest(${ids}::uuid[]) WITH ORDINALITY AS turn (id, place)`
  await db.$executeRaw`
    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    SELECT ${id}::uuid, turn.input_sequence + place.of_turn,
      CASE
        WHEN place.of_turn = 0 THEN 'input.message'
        WHEN place.of_turn = 1 THEN 'turn.started'
        WHEN place.of_turn = ${size}::int - 1 THEN 'turn.completed'
        WHEN place.of_step = 0 THEN 'reason.started'
        WHEN place.of_step = 1 THEN 'output.message.started'
        WHEN place.of_step = ${stepSize}::int - 2 THEN 'output.message.completed'
        WHEN place.of_step = ${stepSize}::int - 1 THEN 'reason.completed'
        ELSE 'output.message.delta'
      END,
      turn.finished_at, turn.id,
      CASE WHEN place.of_turn BETWEEN 2 AND ${size}::int - 2 THEN 'reason:' || place.step ELSE '' END,
      md5(turn.id || '/' || place.step)::uuid, '{"delta": "a word or two "}'
    FROM turns turn
    CROSS JOIN (
      SELECT n AS of_turn, (n - 2) % ${stepSize}::int AS of_step, (n - 2) / ${stepSize}::int + 1 AS step
      FROM generate_series(0, ${size}::int - 1) AS n
    ) AS place
    WHERE turn.id = ANY (${ids}::uuid[])`
  await db.session.update({ where: { id }, data: { lastSequence: lastSequence + turns * size } })
}

export const countDeltas = ({ db }: Deps, sessionId: string): Promise<number> =>
  db.event.count({ where: { sessionId: toUuid(sessionId), type: { endsWith: '.delta' } } })
