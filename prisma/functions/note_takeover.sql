-- Notes in turns.takeovers that a new attempt takes a step from an attempt that has not ended it. record_events calls it
-- under the session's lock.
--
-- Parameters
--   p_session_id, p_turn_id, p_step  the step, whose row is still the attempt before's
--   p_process                        number of the process in which the new attempt runs
--   p_ts                             the time at which it begins
--
-- Nothing is noted of an attempt that has ended as attempts may: its model has failed and is asked again, or its tool
-- has asked its user, or asks an agent. The turn keeps its latest 20 takeovers, each as {step, reason, begun_at, lost_at,
-- at, from, to}:
--   reason   process_stopped  the process of the attempt before has given its steps up, because it stops
--            process_lost     its lease has run out: it was killed, is frozen, or reaches Postgres or Temporal no more
--            retried          it lives, but Temporal has had no heartbeat of the attempt, or the attempt has failed
--   lost_at  the last sign of life: the latest of the attempt's begin, its latest event and, of a process that is dead,
--            the time at which that was last seen
--   from, to  names of the processes, copied, because rows of dead ones are deleted; null where unknown

CREATE OR REPLACE FUNCTION note_takeover(
  p_session_id uuid, p_turn_id uuid, p_step text, p_process bigint, p_ts timestamptz
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_kind text := split_part(p_step, ':', 1);
  v_iteration text := split_part(p_step, ':', 2);
  -- Of a tool's step: the call's id, which may be anything, after a colon.
  v_call text := substr(p_step, length(v_kind) + length(v_iteration) + 2);
  v_lost record;
  v_last record;
  v_from record;
  v_reason text := 'retried';
  v_takeover jsonb;
BEGIN
  SELECT claims, process, begun_at INTO v_lost FROM turn_steps WHERE turn_id = p_turn_id AND step = p_step;
  SELECT type, ts, data INTO v_last FROM events
  WHERE session_id = p_session_id AND turn_id = p_turn_id
    AND sequence >= (SELECT input_sequence FROM turns WHERE id = p_turn_id)
    AND (step = p_step OR CASE v_kind
      WHEN 'reason' THEN starts_with(step, p_step || ':')
      ELSE right(step, length(v_call)) = v_call
        AND (starts_with(step, 'progress:' || v_iteration || ':') OR starts_with(step, 'act:' || v_iteration || ':'))
    END)
  ORDER BY sequence DESC LIMIT 1;
  IF v_last.type = 'reason.retrying'
    OR v_last.type = 'tool.call_requested' AND (v_last.data #>> '{asked,claims}')::integer >= v_lost.claims
    OR v_kind = 'tool' AND EXISTS (
      SELECT FROM events
      WHERE turn_id = p_turn_id AND type = 'tool.started' AND step = p_step AND data ? 'child'
    )
  THEN
    RETURN;
  END IF;

  SELECT name, seen_at = 'epoch' AS has_stopped, seen_at > p_ts - interval '3 seconds' AS lives,
    greatest(seen_at, ended_at) AS ended_at
  INTO v_from FROM processes WHERE number = v_lost.process;
  IF v_from.has_stopped THEN
    v_reason := 'process_stopped';
  ELSIF v_lost.process IS NOT NULL AND v_from.lives IS NOT TRUE THEN
    v_reason := 'process_lost';
  END IF;

  v_takeover := jsonb_build_object(
    'step', p_step,
    'reason', v_reason,
    'begun_at', v_lost.begun_at,
    'lost_at', least(p_ts, greatest(
      v_lost.begun_at, v_last.ts, CASE WHEN v_reason <> 'retried' THEN v_from.ended_at END
    )),
    'at', p_ts,
    'from', v_from.name,
    'to', (SELECT name FROM processes WHERE number = p_process)
  );
  UPDATE turns SET takeovers = CASE
    WHEN jsonb_array_length(takeovers) >= 20 THEN takeovers - 0
    ELSE coalesce(takeovers, '[]')
  END || v_takeover
  WHERE id = p_turn_id;
END $$;
