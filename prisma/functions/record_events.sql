-- Records events of a turn together with the state that they announce, in one transaction under the session's row lock.
-- Nothing else changes the status of a session or of a turn that has been created.
--
-- Parameters
--   p_session_id, p_turn_id  the turn and its session
--   p_step, p_fence          the attempt of a step that writes (see turn_steps); null for writers that need no fence:
--                            the API under the session's lock, and appends that any process may repeat. An attempt that
--                            began before the turn's workflow has a negative fence: it only gets a step that nobody else
--                            has claimed
--   p_events                 [{type, step?, exec_id?, data, secrets?, announces?}], in the order in which they happened
--   p_process                number of the process in which the attempt runs (see processes)
--
-- `secrets` holds the values that a new event leaves out: [{step, kind, value}], rows of call_secrets; `value` is
-- encrypted, in base64.
--
-- `announces` is how a new event changes the state. domain/events/log/announcements.ts defines it for each type of
-- event; this function does not derive the state from the types. All fields are optional:
--   session_status   the session's status from now on. An event that announces 'idle' is left out while another turn of
--                    the session is unfinished.
--   begins_session   true: the session starts now. Such an event is left out when the session has already started.
--   output_preview   the beginning of the session's latest answer
--   turn_status      the turn's status from now on; 'completed', 'failed' and 'cancelled' end it
--   begins_turn      true: the turn starts now
--   iterations       number of model calls that begin with the event
--   usage            {input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens}, added to the usage of the
--                    turn, the session and its agent
--   model            the name of the model that was called, for its usage
--   cost_usd         the cost of a model call in USD, a decimal string, added to the cost of the turn, the session and
--                    its agent; null when a price is unknown, which makes their sums unknown too
--   error, error_code  why the turn failed
--   finish_reason    why the turn's answer ended, if it did not end by itself
--   gives_output     true: the event's data has the turn's output
--   answers_call     true: the event may complete the last call that a waiting turn waits for
--   steers           true: the event is a message that joins the turn
--   steered_through  sequence of the last such message that the answer has read, for an event that ends the turn
--   notifies_workflow  true: the workflow of a turn that has begun must be notified (turns.notice_due_at)
-- Iterations, usage and costs of several events are added up; of any other field, the last event's value counts.
--
-- Two changes depend on the turn's earlier status. A waiting turn becomes active, and its workflow must be notified,
-- when no call is pending any more. When a waiting turn ends, its session becomes active, unless another status is
-- announced. The organization is told of a turn that ends or waits (note_organization_event).
--
-- Returns {outcome, events, ts, claims, next_turn_id}. `outcome` is
--   appended      recorded, except events that were there already or are left out
--   turn_ended    nothing recorded: no event of a turn follows its end
--   not_next      nothing recorded: an earlier turn of the session is unfinished, so this one may not begin
--   fenced        nothing recorded: a newer attempt of the step has begun
--   steered       nothing recorded: the events end the turn, but a message has joined it that the answer has not read
--   session_gone  nothing recorded: there is no such turn
-- events: [[ordinal in p_events from 1, sequence]] of the recorded events. ts: their time.
-- claims: number of attempts of the step that have begun, including this one.
-- next_turn_id: when the turn has ended, the queued turn that is to start next.
--
-- A newer attempt of a step that has an older one may take it over from that (note_takeover).
--
-- An event of a turn happens once: one with the same turn, type and step as another is left out. The partial unique
-- index events_once excludes the types that may repeat, and ON CONFLICT has to spell out its predicate to refer to it.

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
