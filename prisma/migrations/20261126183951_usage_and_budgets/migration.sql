-- CreateEnum
CREATE TYPE "budget_scope" AS ENUM ('turn', 'session', 'agent', 'api_key', 'user', 'organization');

-- CreateEnum
CREATE TYPE "budget_period" AS ENUM ('total', 'day', 'month');

-- CreateEnum
CREATE TYPE "budget_reached" AS ENUM ('stop', 'ask');

-- CreateTable
CREATE TABLE "usage_hours" (
    "organization_id" UUID NOT NULL,
    "hour" TIMESTAMPTZ(0) NOT NULL,
    "session_id" UUID NOT NULL,
    "agent_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "api_key_id" UUID NOT NULL,
    "model" TEXT NOT NULL,
    "calls" INTEGER NOT NULL,
    "unpriced_calls" INTEGER NOT NULL,
    "input_tokens" BIGINT NOT NULL,
    "output_tokens" BIGINT NOT NULL,
    "cache_read_tokens" BIGINT NOT NULL,
    "cache_creation_tokens" BIGINT NOT NULL,
    "cost_usd" DECIMAL NOT NULL,

    CONSTRAINT "usage_hours_pkey" PRIMARY KEY ("organization_id","hour","session_id","agent_id","user_id","api_key_id","model")
);

-- CreateTable
CREATE TABLE "budgets" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "scope" "budget_scope" NOT NULL,
    "scope_id" UUID NOT NULL,
    "session_id" UUID,
    "is_in_usd" BOOLEAN NOT NULL,
    "limit" DECIMAL NOT NULL,
    "step" DECIMAL NOT NULL,
    "period" "budget_period" NOT NULL,
    "on_reached" "budget_reached" NOT NULL,
    "period_start" TIMESTAMPTZ(3) NOT NULL,
    "spent" DECIMAL NOT NULL DEFAULT 0,
    "raised" DECIMAL NOT NULL DEFAULT 0,
    "told" SMALLINT NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "budgets_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "budget_reservations" (
    "turn_id" UUID NOT NULL,
    "step" TEXT NOT NULL,
    "budget_id" UUID NOT NULL,
    "amount" DECIMAL NOT NULL,
    "input" DECIMAL NOT NULL,
    "output_tokens" INTEGER NOT NULL,

    CONSTRAINT "budget_reservations_pkey" PRIMARY KEY ("turn_id","step","budget_id")
);

-- CreateIndex
CREATE INDEX "budgets_organization_id_scope_scope_id_idx" ON "budgets"("organization_id", "scope", "scope_id");

-- CreateIndex
CREATE INDEX "budgets_session_id_idx" ON "budgets"("session_id");

-- CreateIndex
CREATE INDEX "budget_reservations_budget_id_idx" ON "budget_reservations"("budget_id");

-- Usage of turns so far. Their models and authors are not known. Calls that end meanwhile wait.
LOCK TABLE turns IN SHARE ROW EXCLUSIVE MODE;

INSERT INTO usage_hours
SELECT organization_id, date_trunc('hour', coalesce(finished_at, started_at, created_at), 'UTC'), session_id,
  coalesce(agent_id, '00000000-0000-0000-0000-000000000000'), '00000000-0000-0000-0000-000000000000',
  '00000000-0000-0000-0000-000000000000', '', sum(iterations), sum(CASE WHEN cost_usd IS NULL THEN iterations ELSE 0 END),
  sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_creation_tokens), coalesce(sum(cost_usd), 0)
FROM turns WHERE iterations > 0 GROUP BY 1, 2, 3, 4;

-- AddForeignKey
ALTER TABLE "usage_hours" ADD CONSTRAINT "usage_hours_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "budgets" ADD CONSTRAINT "budgets_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "budgets" ADD CONSTRAINT "budgets_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "budget_reservations" ADD CONSTRAINT "budget_reservations_budget_id_fkey" FOREIGN KEY ("budget_id") REFERENCES "budgets"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "budget_reservations" ADD CONSTRAINT "budget_reservations_turn_id_fkey" FOREIGN KEY ("turn_id") REFERENCES "turns"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Copied from prisma/functions/add_usage.sql, which has the manual.
CREATE OR REPLACE FUNCTION add_usage(
  p_organization_id uuid, p_session_id uuid, p_agent_id uuid, p_user_id uuid, p_api_key_id uuid, p_model text, p_at timestamptz,
  p_input_tokens bigint, p_output_tokens bigint, p_cache_read_tokens bigint, p_cache_creation_tokens bigint, p_cost_usd numeric
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_nobody CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
  IF p_agent_id IS NOT NULL THEN
    UPDATE agents SET
      input_tokens = input_tokens + p_input_tokens,
      output_tokens = output_tokens + p_output_tokens,
      cache_read_tokens = cache_read_tokens + p_cache_read_tokens,
      cache_creation_tokens = cache_creation_tokens + p_cache_creation_tokens,
      cost_usd = cost_usd + p_cost_usd
    WHERE organization_id = p_organization_id AND id = p_agent_id;
  END IF;
  INSERT INTO usage_hours (
    organization_id, hour, session_id, agent_id, user_id, api_key_id, model, calls, unpriced_calls, input_tokens,
    output_tokens, cache_read_tokens, cache_creation_tokens, cost_usd
  )
  VALUES (
    p_organization_id, date_trunc('hour', p_at, 'UTC'), coalesce(p_session_id, v_nobody), coalesce(p_agent_id, v_nobody),
    coalesce(p_user_id, v_nobody), coalesce(p_api_key_id, v_nobody), coalesce(p_model, ''), 1, (p_cost_usd IS NULL)::integer,
    p_input_tokens, p_output_tokens, p_cache_read_tokens, p_cache_creation_tokens, coalesce(p_cost_usd, 0)
  )
  ON CONFLICT (organization_id, hour, session_id, agent_id, user_id, api_key_id, model) DO UPDATE SET
    calls = usage_hours.calls + 1,
    unpriced_calls = usage_hours.unpriced_calls + excluded.unpriced_calls,
    input_tokens = usage_hours.input_tokens + excluded.input_tokens,
    output_tokens = usage_hours.output_tokens + excluded.output_tokens,
    cache_read_tokens = usage_hours.cache_read_tokens + excluded.cache_read_tokens,
    cache_creation_tokens = usage_hours.cache_creation_tokens + excluded.cache_creation_tokens,
    cost_usd = usage_hours.cost_usd + excluded.cost_usd;
END $$;

-- Copied from prisma/functions/budgets_counting.sql, which has the manual.
CREATE OR REPLACE FUNCTION budgets_counting(p_turn turns) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
  SELECT b.id FROM (VALUES
    ('organization'::budget_scope, p_turn.organization_id), ('agent', p_turn.agent_id), ('session', p_turn.session_id),
    ('user', p_turn.user_id), ('api_key', p_turn.api_key_id), ('turn', p_turn.id)
  ) AS place (scope, id)
  JOIN budgets b ON b.organization_id = p_turn.organization_id AND b.scope = place.scope AND b.scope_id = place.id
$$;

-- Copied from prisma/functions/lock_budgets.sql, which has the manual.
CREATE OR REPLACE FUNCTION lock_budgets(p_turn turns) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  v_ids uuid[];
  v_now timestamp := clock_timestamp() AT TIME ZONE 'UTC';
BEGIN
  v_ids := ARRAY(SELECT budgets_counting(p_turn));
  IF cardinality(v_ids) = 0 THEN
    RETURN v_ids;
  END IF;
  PERFORM 1 FROM budgets WHERE id = ANY (v_ids) ORDER BY id FOR NO KEY UPDATE;
  UPDATE budgets SET period_start = begun.at, spent = 0, raised = 0, told = 0
  FROM (VALUES ('day'::budget_period, date_trunc('day', v_now) AT TIME ZONE 'UTC'),
    ('month', date_trunc('month', v_now) AT TIME ZONE 'UTC')) AS begun (period, at)
  WHERE id = ANY (v_ids) AND budgets.period = begun.period AND period_start < begun.at;
  RETURN v_ids;
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
  -- The resulting state; null where nothing changes.
  v_session_status session_status;
  v_turn_status turn_status;
  v_has_ended boolean;
  v_notice_due_at timestamptz(3);
BEGIN
  SELECT last_sequence, started_at, organization_id, agent_id INTO v_session
  FROM sessions WHERE id = p_session_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  -- Taken under the lock, so that times are in the order of the sequences.
  v_ts := clock_timestamp();

  SELECT status, user_id, api_key_id INTO v_turn FROM turns WHERE id = p_turn_id AND session_id = p_session_id;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  v_status := v_turn.status;
  IF v_status IN ('completed', 'failed', 'cancelled') THEN
    RETURN jsonb_build_object('outcome', 'turn_ended', 'next_turn_id', next_queued_turn(p_session_id));
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
      INSERT INTO turn_steps (turn_id, step, fence, claims, process) VALUES (p_turn_id, p_step, p_fence, 1, p_process)
      ON CONFLICT (turn_id, step) DO UPDATE SET
        fence = excluded.fence, claims = turn_steps.claims + 1, process = excluded.process
      RETURNING claims INTO v_claims;
    END IF;
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
    v_announced := v_announced || v_event.announces;
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

  IF v_turn_status IS NOT NULL OR v_notice_due_at IS NOT NULL OR v_announced ?| '{begins_turn,iterations,usage,cost_usd,error}' THEN
    UPDATE turns SET
      status = coalesce(v_turn_status, status),
      iterations = iterations + v_iterations,
      started_at = coalesce(started_at, CASE WHEN v_announced ? 'begins_turn' THEN v_ts END),
      notice_due_at = coalesce(v_notice_due_at, notice_due_at),
      finished_at = CASE WHEN v_has_ended THEN v_ts END,
      error = v_announced ->> 'error',
      error_code = v_announced ->> 'error_code',
      finish_reason = v_announced ->> 'finish_reason',
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
    'next_turn_id', CASE WHEN v_has_ended THEN next_queued_turn(p_session_id) END
  );
END $$;

-- Copied from prisma/functions/reserve_budgets.sql, which has the manual.
CREATE OR REPLACE FUNCTION reserve_budgets(
  p_turn_id uuid, p_step text, p_fence bigint, p_input_tokens bigint, p_output_tokens bigint, p_input_usd numeric, p_output_usd numeric,
  p_least_tokens bigint, p_may_be_unpriced boolean
)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_turn turns;
  v_ids uuid[];
  v_room record;
  v_least bigint := least(p_least_tokens, p_output_tokens);
  v_granted bigint;
BEGIN
  -- Held until the reservation is committed, so that the turn's end finds it.
  SELECT * INTO v_turn FROM turns WHERE id = p_turn_id AND finished_at IS NULL AND status <> 'waiting' FOR SHARE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'ended');
  END IF;
  IF EXISTS (
    SELECT FROM turn_steps
    WHERE turn_id = p_turn_id AND step = p_step AND (fence > p_fence OR (fence <> p_fence AND p_fence < 0))
  ) THEN
    RETURN jsonb_build_object('outcome', 'fenced');
  END IF;
  v_ids := lock_budgets(v_turn);
  IF EXISTS (SELECT FROM budget_reservations WHERE turn_id = p_turn_id AND step = p_step) THEN
    PERFORM settle_budgets(v_turn, p_step, NULL, NULL);
  END IF;
  IF p_input_usd IS NULL AND NOT p_may_be_unpriced THEN
    SELECT id INTO v_room FROM budgets WHERE id = ANY (v_ids) AND is_in_usd LIMIT 1;
    IF FOUND THEN
      RETURN jsonb_build_object('outcome', 'unpriced', 'budget', v_room.id);
    END IF;
  END IF;

  -- How many tokens of output each budget has room for: now, and if no other call were under way.
  SELECT id, room, room_alone, share INTO v_room FROM (
    SELECT b.id, b.created_at,
      CASE WHEN price.output > 0 THEN floor((held.rest - held.reserved) / price.output)
        WHEN held.rest - held.reserved >= 0 THEN p_output_tokens * 4 ELSE -1 END AS room,
      CASE WHEN price.output > 0 THEN floor(held.rest / price.output)
        WHEN held.rest >= 0 THEN p_output_tokens * 4 ELSE -1 END AS room_alone,
      CASE WHEN b.scope IN ('turn', 'session') THEN 1 ELSE 4 END AS share
    FROM budgets b
    CROSS JOIN LATERAL (SELECT
      CASE WHEN b.is_in_usd THEN p_input_usd ELSE p_input_tokens END AS input,
      CASE WHEN b.is_in_usd THEN p_output_usd ELSE 1 END AS output
    ) AS price
    CROSS JOIN LATERAL (SELECT
      b."limit" + b.raised - b.spent - price.input AS rest,
      (SELECT coalesce(sum(amount), 0) FROM budget_reservations WHERE budget_id = b.id) AS reserved
    ) AS held
    WHERE b.id = ANY (v_ids) AND (p_input_usd IS NOT NULL OR NOT b.is_in_usd)
  ) AS rooms ORDER BY room_alone >= v_least, room >= v_least, floor(room / share), created_at, id LIMIT 1;
  IF v_room.room < v_least THEN
    IF v_room.room_alone >= v_least THEN
      RETURN jsonb_build_object('outcome', 'busy', 'budget', v_room.id);
    END IF;
    PERFORM spend_budgets(v_turn, jsonb_build_array(
      jsonb_build_object('budget_id', v_room.id, 'amount', 0, 'is_reached', true)
    ));
    RETURN jsonb_build_object('outcome', 'reached', 'budget', v_room.id);
  END IF;

  v_granted := greatest(v_least, least(p_output_tokens, coalesce(floor(v_room.room / v_room.share), p_output_tokens)));
  INSERT INTO budget_reservations (turn_id, step, budget_id, amount, input, output_tokens)
  SELECT p_turn_id, p_step, id, price.input + price.output * v_granted, price.input, v_granted
  FROM budgets CROSS JOIN LATERAL (SELECT
    CASE WHEN is_in_usd THEN p_input_usd ELSE p_input_tokens END AS input,
    CASE WHEN is_in_usd THEN p_output_usd ELSE 1 END AS output
  ) AS price
  WHERE id = ANY (v_ids) AND (p_input_usd IS NOT NULL OR NOT is_in_usd);
  RETURN jsonb_build_object('outcome', 'reserved', 'output_tokens', v_granted);
END $$;

-- Copied from prisma/functions/settle_budgets.sql, which has the manual.
CREATE OR REPLACE FUNCTION settle_budgets(p_turn turns, p_step text, p_usd numeric, p_tokens bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_ids uuid[];
  v_spent jsonb;
BEGIN
  IF p_tokens IS NULL AND NOT EXISTS (
    SELECT FROM budget_reservations WHERE turn_id = p_turn.id AND step = coalesce(p_step, step)
  ) THEN
    RETURN;
  END IF;
  v_ids := lock_budgets(p_turn);
  IF p_tokens IS NOT NULL THEN
    SELECT jsonb_agg(jsonb_build_object(
      'budget_id', id, 'amount', CASE WHEN is_in_usd THEN coalesce(p_usd, 0) ELSE p_tokens END
    )) INTO v_spent FROM budgets WHERE id = ANY (v_ids);
  ELSE
    SELECT jsonb_agg(jsonb_build_object('budget_id', budget_id, 'amount', amount)) INTO v_spent FROM (
      SELECT r.budget_id,
        sum(r.input + (r.amount - r.input) * least(1, streamed.tokens / greatest(1, r.output_tokens))) AS amount
      FROM budget_reservations r CROSS JOIN LATERAL (
        SELECT coalesce(sum(ceil(octet_length(e.data ->> 'delta') / 3.0)), 0) AS tokens FROM events e
        WHERE e.turn_id = r.turn_id AND e.step = r.step AND e.type IN ('output.message.delta', 'reason.thinking.delta')
          AND e.session_id = p_turn.session_id
          AND e.sequence > (
            SELECT max(sequence) FROM events s
            WHERE s.turn_id = r.turn_id AND s.step = r.step AND s.type = 'output.message.started'
              AND s.session_id = e.session_id AND s.sequence > p_turn.input_sequence
          )
      ) AS streamed
      WHERE r.turn_id = p_turn.id AND r.step = coalesce(p_step, r.step)
      GROUP BY r.budget_id
    ) AS lost;
  END IF;
  DELETE FROM budget_reservations WHERE turn_id = p_turn.id AND step = coalesce(p_step, step);
  IF v_spent IS NOT NULL THEN
    PERFORM spend_budgets(p_turn, v_spent);
  END IF;
END $$;

-- Copied from prisma/functions/spend_budgets.sql, which has the manual.
CREATE OR REPLACE FUNCTION spend_budgets(p_turn turns, p_spent jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_budget record;
  v_told smallint;
BEGIN
  FOR v_budget IN
    UPDATE budgets SET spent = spent + (s ->> 'amount')::numeric
    FROM jsonb_array_elements(p_spent) AS s WHERE id = (s ->> 'budget_id')::uuid
    RETURNING budgets.*, coalesce((s ->> 'is_reached')::boolean, false) AS is_reached
  LOOP
    v_told := CASE
      WHEN v_budget.is_reached OR v_budget.spent >= v_budget."limit" + v_budget.raised THEN 100
      WHEN v_budget.spent >= 0.8 * (v_budget."limit" + v_budget.raised) THEN 80
      ELSE 0
    END;
    CONTINUE WHEN v_told <= v_budget.told;
    UPDATE budgets SET told = v_told WHERE id = v_budget.id;
    PERFORM note_organization_event(
      v_budget.organization_id, 'budget.reached', p_turn.agent_id, NULL, NULL, jsonb_strip_nulls(jsonb_build_object(
        'budget_id', 'budget_' || replace(v_budget.id::text, '-', ''),
        'scope', v_budget.scope,
        'percent', v_told,
        'unit', CASE WHEN v_budget.is_in_usd THEN 'usd' ELSE 'tokens' END,
        'limit', trim_scale(v_budget."limit" + v_budget.raised)::text,
        'spent', trim_scale(v_budget.spent)::text,
        'period', v_budget.period,
        'on_reached', v_budget.on_reached,
        'turn_id', 'turn_' || replace(p_turn.id::text, '-', '')
      ))
    );
  END LOOP;
END $$;
