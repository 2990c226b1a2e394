-- AlterTable
ALTER TABLE "processes" ADD COLUMN     "ended_at" TIMESTAMPTZ(3),
ADD COLUMN     "name" TEXT;

-- AlterTable
-- The default comes afterwards, because nobody knows when the steps of earlier releases have begun.
ALTER TABLE "turn_steps" ADD COLUMN     "begun_at" TIMESTAMPTZ(3);
ALTER TABLE "turn_steps" ALTER COLUMN "begun_at" SET DEFAULT CURRENT_TIMESTAMP;

-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "takeovers" JSONB;

-- Copied from prisma/functions/note_takeover.sql, which has the manual.
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

-- Copied from prisma/functions/record_events.sql, which has the manual.
CREATE OR REPLACE FUNCTION record_events(
  p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint, p_events jsonb, p_process bigint DEFAULT NULL
)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_session record;
  v_turn record;
  v_status turn_status;
  v_fence bigint;
  v_claims integer := 0;
  v_ts timestamptz(3);
  v_event record;
  v_sequence integer;
  v_rows jsonb := '[]';
  -- The announcements of the events that are new: merged, and added up.
  v_announced jsonb := '{}';
  v_iterations integer := 0;
  v_input_tokens bigint := 0;
  v_output_tokens bigint := 0;
  v_cache_read_tokens bigint := 0;
  v_cache_creation_tokens bigint := 0;
  v_cost_usd numeric := 0;
  v_output jsonb;
  -- The resulting state; null where nothing changes.
  v_session_status session_status;
  v_turn_status turn_status;
  v_has_ended boolean;
  v_notice_due_at timestamptz(3);
  v_steer_sequence integer;
BEGIN
  SELECT last_sequence, started_at, organization_id, agent_id INTO v_session
  FROM sessions WHERE id = p_session_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  -- Taken under the lock, so that times are in the order of the sequences.
  v_ts := clock_timestamp();

  SELECT status, user_id, api_key_id, steer_sequence INTO v_turn FROM turns WHERE id = p_turn_id AND session_id = p_session_id;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  v_status := v_turn.status;
  IF v_status IN ('completed', 'failed', 'cancelled') THEN
    RETURN jsonb_build_object('outcome', 'turn_ended', 'next_turn_id', next_turn_to_start(p_session_id));
  END IF;

  IF p_step IS NOT NULL THEN
    IF v_status = 'queued' AND p_turn_id IS DISTINCT FROM next_queued_turn(p_session_id) THEN
      RETURN jsonb_build_object('outcome', 'not_next');
    END IF;
    SELECT fence, claims INTO v_fence, v_claims FROM turn_steps WHERE turn_id = p_turn_id AND step = p_step;
    IF v_fence > p_fence OR (v_fence <> p_fence AND p_fence < 0) THEN
      RETURN jsonb_build_object('outcome', 'fenced');
    END IF;
    IF v_fence IS DISTINCT FROM p_fence THEN
      IF v_fence IS NOT NULL THEN
        PERFORM note_takeover(p_session_id, p_turn_id, p_step, p_process, v_ts);
      END IF;
      INSERT INTO turn_steps (turn_id, step, fence, claims, process, begun_at)
      VALUES (p_turn_id, p_step, p_fence, 1, p_process, v_ts)
      ON CONFLICT (turn_id, step) DO UPDATE SET
        fence = excluded.fence, claims = turn_steps.claims + 1, process = excluded.process, begun_at = excluded.begun_at
      RETURNING claims INTO v_claims;
    END IF;
  END IF;

  IF v_turn.steer_sequence IS NOT NULL AND EXISTS (
    SELECT FROM jsonb_array_elements(p_events) AS e
    WHERE (e.value #>> '{announces,steered_through}')::integer < v_turn.steer_sequence
  ) THEN
    RETURN jsonb_build_object('outcome', 'steered');
  END IF;

  v_sequence := v_session.last_sequence;
  FOR v_event IN
    SELECT e.ordinality, e.value ->> 'type' AS type, coalesce(e.value ->> 'step', '') AS step,
      (e.value ->> 'exec_id')::uuid AS exec_id, e.value -> 'data' AS data,
      e.value -> 'secrets' AS secrets, coalesce(e.value -> 'announces', '{}') AS announces
    FROM jsonb_array_elements(p_events) WITH ORDINALITY AS e ORDER BY e.ordinality
  LOOP
    CONTINUE WHEN v_session.started_at IS NOT NULL AND v_event.announces ? 'begins_session';
    IF v_event.announces ->> 'session_status' = 'idle' THEN
      CONTINUE WHEN EXISTS (
        SELECT FROM turns WHERE session_id = p_session_id AND finished_at IS NULL AND id <> p_turn_id
      );
    END IF;

    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    VALUES (p_session_id, v_sequence + 1, v_event.type, v_ts, p_turn_id, v_event.step, v_event.exec_id, v_event.data)
    ON CONFLICT (turn_id, type, step)
      WHERE type NOT IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta')
      DO NOTHING;
    CONTINUE WHEN NOT FOUND;
    v_sequence := v_sequence + 1;
    v_rows := v_rows || jsonb_build_array(jsonb_build_array(v_event.ordinality, v_sequence));

    IF v_event.secrets IS NOT NULL THEN
      INSERT INTO call_secrets (session_id, turn_id, step, kind, value)
      SELECT p_session_id, p_turn_id, s ->> 'step', (s ->> 'kind')::call_secret_kind, decode(s ->> 'value', 'base64')
      FROM jsonb_array_elements(v_event.secrets) AS s;
    END IF;

    CONTINUE WHEN v_event.announces = '{}';
    IF v_event.announces ? 'steers' THEN
      v_steer_sequence := v_sequence;
    END IF;
    v_announced := v_announced || v_event.announces;
    IF v_event.announces ? 'gives_output' THEN
      v_output := v_event.data -> 'output';
    END IF;
    v_iterations := v_iterations + coalesce((v_event.announces ->> 'iterations')::integer, 0);
    IF v_event.announces ? 'usage' THEN
      v_input_tokens := v_input_tokens + (v_event.announces #>> '{usage,input_tokens}')::bigint;
      v_output_tokens := v_output_tokens + (v_event.announces #>> '{usage,output_tokens}')::bigint;
      v_cache_read_tokens := v_cache_read_tokens + (v_event.announces #>> '{usage,cache_read_tokens}')::bigint;
      v_cache_creation_tokens :=
        v_cache_creation_tokens + (v_event.announces #>> '{usage,cache_creation_tokens}')::bigint;
    END IF;
    IF v_event.announces ? 'cost_usd' THEN
      v_cost_usd := v_cost_usd + (v_event.announces ->> 'cost_usd')::numeric;
    END IF;
  END LOOP;

  -- Workers of the previous release announce no costs.
  IF v_announced ? 'usage' AND NOT v_announced ? 'cost_usd' THEN
    v_cost_usd := NULL;
  END IF;

  v_session_status := v_announced ->> 'session_status';
  v_turn_status := v_announced ->> 'turn_status';
  v_has_ended := coalesce(v_turn_status IN ('completed', 'failed', 'cancelled'), false);
  IF v_status = 'waiting' AND v_has_ended THEN
    v_session_status := coalesce(v_session_status, 'active');
  ELSIF v_status = 'waiting' AND v_announced ? 'answers_call' AND NOT EXISTS (SELECT FROM pending_calls(p_turn_id)) THEN
    v_turn_status := 'active';
    v_session_status := 'active';
    v_notice_due_at := v_ts;
  END IF;
  IF v_status <> 'queued' AND v_announced ? 'notifies_workflow' THEN
    v_notice_due_at := v_ts;
  END IF;

  IF v_turn_status IS NOT NULL OR v_notice_due_at IS NOT NULL OR v_steer_sequence IS NOT NULL
    OR v_announced ?| '{begins_turn,iterations,usage,cost_usd,error}' THEN
    UPDATE turns SET
      status = coalesce(v_turn_status, status),
      iterations = iterations + v_iterations,
      started_at = coalesce(started_at, CASE WHEN v_announced ? 'begins_turn' THEN v_ts END),
      notice_due_at = coalesce(v_notice_due_at, notice_due_at),
      finished_at = CASE WHEN v_has_ended THEN v_ts END,
      error = v_announced ->> 'error',
      error_code = v_announced ->> 'error_code',
      finish_reason = v_announced ->> 'finish_reason',
      output = v_output,
      steer_sequence = coalesce(v_steer_sequence, steer_sequence),
      input_tokens = input_tokens + v_input_tokens,
      output_tokens = output_tokens + v_output_tokens,
      cache_read_tokens = cache_read_tokens + v_cache_read_tokens,
      cache_creation_tokens = cache_creation_tokens + v_cache_creation_tokens,
      cost_usd = cost_usd + v_cost_usd
    WHERE id = p_turn_id;
  END IF;
  IF v_sequence > v_session.last_sequence THEN
    UPDATE sessions SET
      last_sequence = v_sequence,
      status = coalesce(v_session_status, status),
      last_turn_status = CASE WHEN v_has_ended THEN v_turn_status ELSE last_turn_status END,
      started_at = coalesce(started_at, CASE WHEN v_announced ? 'begins_session' THEN v_ts END),
      finished_at = CASE WHEN v_session_status = 'idle' THEN v_ts ELSE finished_at END,
      output_preview = coalesce(v_announced ->> 'output_preview', output_preview),
      updated_at = v_ts,
      input_tokens = input_tokens + v_input_tokens,
      output_tokens = output_tokens + v_output_tokens,
      cache_read_tokens = cache_read_tokens + v_cache_read_tokens,
      cache_creation_tokens = cache_creation_tokens + v_cache_creation_tokens,
      cost_usd = cost_usd + v_cost_usd
    WHERE id = p_session_id;
  END IF;
  IF v_announced ?| '{usage,cost_usd}' THEN
    PERFORM add_usage(
      v_session.organization_id, p_session_id, v_session.agent_id, v_turn.user_id, v_turn.api_key_id, v_announced ->> 'model', v_ts,
      v_input_tokens, v_output_tokens, v_cache_read_tokens, v_cache_creation_tokens, v_cost_usd
    );
    PERFORM settle_budgets(t, p_step, v_cost_usd, v_input_tokens + v_output_tokens) FROM turns t WHERE id = p_turn_id;
  END IF;
  IF v_has_ended THEN
    PERFORM settle_budgets(t, NULL, NULL, NULL) FROM turns t WHERE id = p_turn_id;
  END IF;
  IF v_has_ended OR v_turn_status = 'waiting' THEN
    PERFORM note_organization_event(
      v_session.organization_id, 'turn.' || v_turn_status, v_session.agent_id, p_session_id, p_turn_id, '{}'
    );
  END IF;

  RETURN jsonb_build_object(
    'outcome', 'appended',
    'events', v_rows,
    'ts', v_ts,
    'claims', v_claims,
    'next_turn_id', CASE WHEN v_has_ended THEN next_turn_to_start(p_session_id) END
  );
END $$;
