-- AlterTable
ALTER TABLE "turn_steps" ADD COLUMN     "claims" INTEGER NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "notice_due_at" TIMESTAMPTZ(3);

-- From here on by hand: Prisma's schema language cannot express it.

-- Turns whose workflow has yet to be notified: a handful at any time.
CREATE INDEX turns_notice_due ON turns (notice_due_at) WHERE notice_due_at IS NOT NULL;

-- For the sweeper: queued turns.
CREATE INDEX turns_queued ON turns (created_at) WHERE status = 'queued';

-- Returns null when the turn at the head of the queue has already been started.
CREATE OR REPLACE FUNCTION next_queued_turn(p_session_id uuid) RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN status = 'queued' THEN id END FROM turns
  WHERE session_id = p_session_id AND finished_at IS NULL
  ORDER BY input_sequence LIMIT 1
$$;

-- Lists the calls that a turn's client was asked for and has not decided yet. An approved call has tool.started.
CREATE FUNCTION pending_calls(p_turn_id uuid) RETURNS TABLE (step text, call jsonb) LANGUAGE sql STABLE AS $$
  SELECT asked.step, asked.call FROM (
    SELECT 'tool:' || split_part(e.step, ':', 2) || ':' || (c ->> 'id') AS step, c AS call
    FROM events e CROSS JOIN jsonb_array_elements(e.data -> 'tool_calls') AS c
    WHERE e.turn_id = p_turn_id AND e.type = 'tool.call_requested'
  ) AS asked
  WHERE NOT EXISTS (
    SELECT FROM events d
    WHERE d.turn_id = p_turn_id AND d.type IN ('tool.started', 'tool.completed') AND d.step = asked.step
  )
$$;

-- Records events that a turn writes, together with the state that they announce, under the session's row lock.
--
-- p_events: [{type, step?, exec_id?, data}]. p_step and p_fence name the attempt that writes; null when the
-- writer is the workflow itself, whose appends may be repeated by anybody.
--
-- Returns {outcome, events: [[ordinal from 1, sequence]], ts, claims, next_turn_id}. outcome is
--   appended      recorded; an event that was there already is left out of events
--   turn_ended    nothing recorded: no event of a turn follows its end
--   not_next      nothing recorded: an earlier turn of the session is unfinished, so this one may not begin
--   fenced        nothing recorded: a newer attempt of the step has begun
--   session_gone  nothing recorded
-- claims: how many attempts of the step have begun, with this one.
-- next_turn_id: when the turn has ended, the queued turn that is to start next.
CREATE OR REPLACE FUNCTION append_events(p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint, p_events jsonb)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_session record;
  v_status turn_status;
  v_fence bigint;
  v_claims integer := 0;
  v_ts timestamptz(3);
  v_others boolean;
  v_event record;
  v_sequence integer;
  v_repeats boolean;
  v_rows jsonb := '[]';
  -- The state that the events announce; null where they announce none.
  v_session_status session_status;
  v_turn_status turn_status;
  v_reasons integer := 0;
  v_usage jsonb;
  v_preview text;
  v_error text;
  v_error_code text;
  v_session_has_started boolean := false;
  v_has_started boolean := false;
  v_has_ended boolean := false;
  v_is_answer boolean := false;
  v_notice_due_at timestamptz(3);
BEGIN
  SELECT last_sequence, started_at, agent_id INTO v_session
  FROM sessions WHERE id = p_session_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  -- Taken under the lock, so that times are in the order of the sequences.
  v_ts := clock_timestamp();

  SELECT status INTO v_status FROM turns WHERE id = p_turn_id AND session_id = p_session_id;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  IF v_status IN ('completed', 'failed', 'cancelled') THEN
    RETURN jsonb_build_object('outcome', 'turn_ended', 'next_turn_id', next_queued_turn(p_session_id));
  END IF;

  IF p_step IS NOT NULL THEN
    IF v_status = 'queued' AND p_turn_id IS DISTINCT FROM next_queued_turn(p_session_id) THEN
      RETURN jsonb_build_object('outcome', 'not_next');
    END IF;
    SELECT fence, claims INTO v_fence, v_claims FROM turn_steps WHERE turn_id = p_turn_id AND step = p_step;
    IF v_fence > p_fence THEN
      RETURN jsonb_build_object('outcome', 'fenced');
    END IF;
    IF v_fence IS DISTINCT FROM p_fence THEN
      INSERT INTO turn_steps (turn_id, step, fence, claims) VALUES (p_turn_id, p_step, p_fence, 1)
      ON CONFLICT (turn_id, step) DO UPDATE SET fence = excluded.fence, claims = turn_steps.claims + 1
      RETURNING claims INTO v_claims;
    END IF;
  END IF;

  v_sequence := v_session.last_sequence;
  FOR v_event IN
    SELECT e.ordinality, e.value ->> 'type' AS type, coalesce(e.value ->> 'step', '') AS step,
      (e.value ->> 'exec_id')::uuid AS exec_id, e.value -> 'data' AS data
    FROM jsonb_array_elements(p_events) WITH ORDINALITY AS e ORDER BY e.ordinality
  LOOP
    CONTINUE WHEN v_event.type = 'session.started' AND v_session.started_at IS NOT NULL;
    IF v_event.type = 'session.idled' THEN
      v_others := EXISTS (
        SELECT FROM turns WHERE session_id = p_session_id AND finished_at IS NULL AND id <> p_turn_id
      );
      CONTINUE WHEN v_others;
    END IF;

    v_repeats := v_event.type IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta');
    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    VALUES (p_session_id, v_sequence + 1, v_event.type, v_ts, p_turn_id, v_event.step, v_event.exec_id, v_event.data)
    ON CONFLICT (turn_id, type, step)
      WHERE type NOT IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta')
      DO NOTHING;
    CONTINUE WHEN NOT FOUND;
    v_sequence := v_sequence + 1;
    v_rows := v_rows || jsonb_build_array(jsonb_build_array(v_event.ordinality, v_sequence));
    CONTINUE WHEN v_repeats;

    CASE v_event.type
      WHEN 'session.started' THEN
        v_session_has_started := true;
      WHEN 'session.activated' THEN
        v_session_status := 'active';
      WHEN 'turn.started' THEN
        v_turn_status := 'active';
        v_has_started := true;
      WHEN 'reason.started' THEN
        v_session_status := 'active';
        v_turn_status := 'active';
        v_reasons := v_reasons + 1;
      WHEN 'output.message.completed' THEN
        v_preview := left((
          SELECT string_agg(part ->> 'text', '') FROM jsonb_array_elements(v_event.data #> '{message,content}') AS part
          WHERE part ->> 'type' = 'text'
        ), 200);
      WHEN 'reason.completed' THEN
        v_usage := v_event.data -> 'usage';
      WHEN 'tool.call_requested' THEN
        v_session_status := 'waitingfortoolresults';
        v_turn_status := 'waiting';
      WHEN 'tool.started', 'tool.completed' THEN
        v_is_answer := v_status = 'waiting';
      WHEN 'turn.completed', 'turn.failed', 'turn.cancelled' THEN
        v_turn_status := split_part(v_event.type, '.', 2)::turn_status;
        v_error := v_event.data ->> 'error';
        v_error_code := v_event.data ->> 'error_code';
        v_has_ended := true;
        -- A running turn may be cancelled by another process than its workflow, and a waiting turn stops waiting.
        IF v_event.type = 'turn.cancelled' AND v_status <> 'queued' THEN
          v_notice_due_at := v_ts;
        END IF;
        IF v_status = 'waiting' THEN
          v_session_status := 'active';
        END IF;
      WHEN 'session.idled' THEN
        v_session_status := 'idle';
      ELSE NULL;
    END CASE;
  END LOOP;

  IF v_is_answer AND NOT v_has_ended AND NOT EXISTS (SELECT FROM pending_calls(p_turn_id)) THEN
    v_turn_status := 'active';
    v_session_status := 'active';
    v_notice_due_at := v_ts;
  END IF;
  IF v_turn_status IS NOT NULL OR v_usage IS NOT NULL THEN
    UPDATE turns SET
      status = coalesce(v_turn_status, status),
      iterations = iterations + v_reasons,
      started_at = coalesce(started_at, CASE WHEN v_has_started THEN v_ts END),
      notice_due_at = coalesce(v_notice_due_at, notice_due_at),
      finished_at = CASE WHEN v_has_ended THEN v_ts END,
      error = v_error,
      error_code = v_error_code,
      input_tokens = input_tokens + coalesce((v_usage ->> 'input_tokens')::bigint, 0),
      output_tokens = output_tokens + coalesce((v_usage ->> 'output_tokens')::bigint, 0),
      cache_read_tokens = cache_read_tokens + coalesce((v_usage ->> 'cache_read_tokens')::bigint, 0),
      cache_creation_tokens = cache_creation_tokens + coalesce((v_usage ->> 'cache_creation_tokens')::bigint, 0)
    WHERE id = p_turn_id;
  END IF;
  IF v_sequence > v_session.last_sequence THEN
    UPDATE sessions SET
      last_sequence = v_sequence,
      status = coalesce(v_session_status, status),
      started_at = coalesce(started_at, CASE WHEN v_session_has_started THEN v_ts END),
      finished_at = CASE WHEN v_session_status = 'idle' THEN v_ts ELSE finished_at END,
      output_preview = coalesce(v_preview, output_preview),
      updated_at = v_ts,
      input_tokens = input_tokens + coalesce((v_usage ->> 'input_tokens')::bigint, 0),
      output_tokens = output_tokens + coalesce((v_usage ->> 'output_tokens')::bigint, 0),
      cache_read_tokens = cache_read_tokens + coalesce((v_usage ->> 'cache_read_tokens')::bigint, 0),
      cache_creation_tokens = cache_creation_tokens + coalesce((v_usage ->> 'cache_creation_tokens')::bigint, 0)
    WHERE id = p_session_id;
  END IF;
  IF v_usage IS NOT NULL AND v_session.agent_id IS NOT NULL THEN
    UPDATE agents SET
      input_tokens = input_tokens + coalesce((v_usage ->> 'input_tokens')::bigint, 0),
      output_tokens = output_tokens + coalesce((v_usage ->> 'output_tokens')::bigint, 0),
      cache_read_tokens = cache_read_tokens + coalesce((v_usage ->> 'cache_read_tokens')::bigint, 0),
      cache_creation_tokens = cache_creation_tokens + coalesce((v_usage ->> 'cache_creation_tokens')::bigint, 0)
    WHERE id = v_session.agent_id;
  END IF;

  RETURN jsonb_build_object(
    'outcome', 'appended',
    'events', v_rows,
    'ts', v_ts,
    'claims', v_claims,
    'next_turn_id', CASE WHEN v_has_ended THEN next_queued_turn(p_session_id) END
  );
END $$;
