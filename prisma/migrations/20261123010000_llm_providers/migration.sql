-- CreateEnum
CREATE TYPE "llm_provider_type" AS ENUM ('openai', 'openai_completions', 'anthropic', 'gemini', 'llmsim');

-- CreateEnum
CREATE TYPE "llm_status" AS ENUM ('active', 'disabled');

-- CreateEnum
CREATE TYPE "llm_model_source" AS ENUM ('manual', 'discovered', 'predefined');

-- AlterTable
ALTER TABLE "organizations" ADD COLUMN "default_model_id" UUID;

-- The cost of earlier usage is unknown, so the column is null in rows with usage.
ALTER TABLE "agents" ADD COLUMN "cost_usd" DECIMAL;
ALTER TABLE "agents" ALTER COLUMN "cost_usd" SET DEFAULT 0;
UPDATE "agents" SET "cost_usd" = 0 WHERE "input_tokens" = 0 AND "output_tokens" = 0;
ALTER TABLE "sessions" ADD COLUMN "cost_usd" DECIMAL;
ALTER TABLE "sessions" ALTER COLUMN "cost_usd" SET DEFAULT 0;
UPDATE "sessions" SET "cost_usd" = 0 WHERE "input_tokens" = 0 AND "output_tokens" = 0;
ALTER TABLE "turns" ADD COLUMN "cost_usd" DECIMAL;
ALTER TABLE "turns" ALTER COLUMN "cost_usd" SET DEFAULT 0;
UPDATE "turns" SET "cost_usd" = 0 WHERE "input_tokens" = 0 AND "output_tokens" = 0;

-- CreateTable
CREATE TABLE "llm_providers" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "name" TEXT,
    "type" "llm_provider_type",
    "base_url" TEXT,
    "api_key" BYTEA,
    "status" "llm_status" NOT NULL DEFAULT 'active',
    "last_synced_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "llm_providers_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "llm_models" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "provider_id" UUID NOT NULL,
    "name" TEXT,
    "display_name" TEXT,
    "capabilities" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "is_favorite" BOOLEAN NOT NULL DEFAULT false,
    "status" "llm_status" NOT NULL DEFAULT 'active',
    "source" "llm_model_source" NOT NULL,
    "is_stale" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "llm_models_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateIndex
CREATE INDEX "llm_models_organization_id_provider_id_id_idx" ON "llm_models"("organization_id", "provider_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "llm_models_organization_id_provider_id_name_key" ON "llm_models"("organization_id", "provider_id", "name");

-- AddForeignKey
ALTER TABLE "llm_providers" ADD CONSTRAINT "llm_providers_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "llm_models" ADD CONSTRAINT "llm_models_organization_id_provider_id_fkey" FOREIGN KEY ("organization_id", "provider_id") REFERENCES "llm_providers"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Copied from prisma/functions/append_events.sql, which has the manual.
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
  SELECT last_sequence, started_at, organization_id, agent_id INTO v_session
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
      cache_creation_tokens = cache_creation_tokens + coalesce((v_usage ->> 'cache_creation_tokens')::bigint, 0),
      cost_usd = CASE WHEN coalesce(v_usage, 'null') = 'null' THEN cost_usd END
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
      cache_creation_tokens = cache_creation_tokens + coalesce((v_usage ->> 'cache_creation_tokens')::bigint, 0),
      cost_usd = CASE WHEN coalesce(v_usage, 'null') = 'null' THEN cost_usd END
    WHERE id = p_session_id;
  END IF;
  IF v_usage IS NOT NULL AND v_session.agent_id IS NOT NULL THEN
    UPDATE agents SET
      input_tokens = input_tokens + coalesce((v_usage ->> 'input_tokens')::bigint, 0),
      output_tokens = output_tokens + coalesce((v_usage ->> 'output_tokens')::bigint, 0),
      cache_read_tokens = cache_read_tokens + coalesce((v_usage ->> 'cache_read_tokens')::bigint, 0),
      cache_creation_tokens = cache_creation_tokens + coalesce((v_usage ->> 'cache_creation_tokens')::bigint, 0),
      cost_usd = CASE WHEN coalesce(v_usage, 'null') = 'null' THEN cost_usd END
    WHERE organization_id = v_session.organization_id AND id = v_session.agent_id;
  END IF;

  RETURN jsonb_build_object(
    'outcome', 'appended',
    'events', v_rows,
    'ts', v_ts,
    'claims', v_claims,
    'next_turn_id', CASE WHEN v_has_ended THEN next_queued_turn(p_session_id) END
  );
END $$;

-- Copied from prisma/functions/record_events.sql, which has the manual.
CREATE OR REPLACE FUNCTION record_events(p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint, p_events jsonb)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_session record;
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
      (e.value ->> 'exec_id')::uuid AS exec_id, e.value -> 'data' AS data,
      coalesce(e.value -> 'announces', '{}') AS announces
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
  IF v_announced ?| '{usage,cost_usd}' AND v_session.agent_id IS NOT NULL THEN
    UPDATE agents SET
      input_tokens = input_tokens + v_input_tokens,
      output_tokens = output_tokens + v_output_tokens,
      cache_read_tokens = cache_read_tokens + v_cache_read_tokens,
      cache_creation_tokens = cache_creation_tokens + v_cache_creation_tokens,
      cost_usd = cost_usd + v_cost_usd
    WHERE organization_id = v_session.organization_id AND id = v_session.agent_id;
  END IF;

  RETURN jsonb_build_object(
    'outcome', 'appended',
    'events', v_rows,
    'ts', v_ts,
    'claims', v_claims,
    'next_turn_id', CASE WHEN v_has_ended THEN next_queued_turn(p_session_id) END
  );
END $$;
