-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "public";

-- CreateEnum
CREATE TYPE "agent_status" AS ENUM ('active', 'archived');

-- CreateEnum
CREATE TYPE "session_status" AS ENUM ('started', 'active', 'idle', 'waitingfortoolresults');

-- CreateEnum
CREATE TYPE "turn_status" AS ENUM ('queued', 'active', 'waiting', 'completed', 'failed', 'cancelled');

-- CreateTable
CREATE TABLE "organizations" (
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "organizations_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "agents" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "system_prompt" TEXT NOT NULL,
    "default_model_id" UUID,
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "capabilities" JSONB NOT NULL DEFAULT '[]',
    "tools" JSONB NOT NULL DEFAULT '[]',
    "status" "agent_status" NOT NULL DEFAULT 'active',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    "input_tokens" BIGINT NOT NULL DEFAULT 0,
    "output_tokens" BIGINT NOT NULL DEFAULT 0,
    "cache_read_tokens" BIGINT NOT NULL DEFAULT 0,
    "cache_creation_tokens" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "agents_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "sessions" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "agent_id" UUID,
    "harness_id" UUID NOT NULL,
    "model_id" UUID,
    "title" TEXT,
    "tags" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "capabilities" JSONB NOT NULL DEFAULT '[]',
    "tools" JSONB NOT NULL DEFAULT '[]',
    "status" "session_status" NOT NULL DEFAULT 'started',
    "last_sequence" INTEGER NOT NULL DEFAULT 0,
    "preview" TEXT,
    "output_preview" TEXT,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    "input_tokens" BIGINT NOT NULL DEFAULT 0,
    "output_tokens" BIGINT NOT NULL DEFAULT 0,
    "cache_read_tokens" BIGINT NOT NULL DEFAULT 0,
    "cache_creation_tokens" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "sessions_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "turns" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "input_sequence" INTEGER NOT NULL,
    "controls" JSONB,
    "status" "turn_status" NOT NULL DEFAULT 'queued',
    "iterations" INTEGER NOT NULL DEFAULT 0,
    "error" TEXT,
    "error_code" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),
    "input_tokens" BIGINT NOT NULL DEFAULT 0,
    "output_tokens" BIGINT NOT NULL DEFAULT 0,
    "cache_read_tokens" BIGINT NOT NULL DEFAULT 0,
    "cache_creation_tokens" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "turns_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "turn_steps" (
    "turn_id" UUID NOT NULL,
    "step" TEXT NOT NULL,
    "fence" BIGINT NOT NULL,
    "failures" INTEGER NOT NULL DEFAULT 0,
    "waited_ms" INTEGER NOT NULL DEFAULT 0,
    "error" TEXT,

    CONSTRAINT "turn_steps_pkey" PRIMARY KEY ("turn_id","step")
);

-- CreateTable
CREATE TABLE "events" (
    "session_id" UUID NOT NULL,
    "sequence" INTEGER NOT NULL,
    "type" TEXT NOT NULL,
    "ts" TIMESTAMPTZ(3) NOT NULL,
    "turn_id" UUID NOT NULL,
    "step" TEXT NOT NULL DEFAULT '',
    "exec_id" UUID,
    "data" JSONB NOT NULL,

    CONSTRAINT "events_pkey" PRIMARY KEY ("session_id","sequence")
);

-- CreateTable
CREATE TABLE "service_keys" (
    "name" TEXT NOT NULL,
    "value" BYTEA NOT NULL,

    CONSTRAINT "service_keys_pkey" PRIMARY KEY ("name")
);

-- CreateIndex
CREATE INDEX "agents_organization_id_created_at_id_idx" ON "agents"("organization_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "sessions_organization_id_created_at_id_idx" ON "sessions"("organization_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "sessions_agent_id_created_at_id_idx" ON "sessions"("agent_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "turns_session_id_input_sequence_key" ON "turns"("session_id", "input_sequence" DESC);

-- AddForeignKey
ALTER TABLE "agents" ADD CONSTRAINT "agents_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_agent_id_fkey" FOREIGN KEY ("agent_id") REFERENCES "agents"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "turns" ADD CONSTRAINT "turns_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "turns" ADD CONSTRAINT "turns_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "turn_steps" ADD CONSTRAINT "turn_steps_turn_id_fkey" FOREIGN KEY ("turn_id") REFERENCES "turns"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "events" ADD CONSTRAINT "events_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- From here on by hand: Prisma's schema language cannot express it.

INSERT INTO organizations (id, name, updated_at)
VALUES ('00000000-0000-0000-0000-000000000001', 'Default Organization', now());

-- Unfinished turns: few however long the history is, so the sweeper and every append stay cheap.
CREATE INDEX turns_unfinished ON turns (session_id, input_sequence) WHERE finished_at IS NULL;

-- An event of a turn is recorded once, also when a step runs twice. The three excluded types repeat in a new attempt.
CREATE UNIQUE INDEX events_once ON events (turn_id, type, step)
WHERE type NOT IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta');

-- Most updates of these rows change counters only; room in the page keeps them off the indexes.
ALTER TABLE sessions SET (fillfactor = 70);
ALTER TABLE turns SET (fillfactor = 70);

CREATE FUNCTION next_queued_turn(p_session_id uuid) RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT id FROM turns
  WHERE session_id = p_session_id AND finished_at IS NULL AND status = 'queued'
  ORDER BY input_sequence LIMIT 1
$$;

-- Records events that a turn writes, together with the state that they announce, under the session's row lock.
--
-- p_events: [{type, step?, exec_id?, data}]. p_step and p_fence name the attempt that writes; null when the
-- writer is the workflow itself, whose appends may be repeated by anybody.
--
-- Returns {outcome, events: [[ordinal from 1, sequence]], ts, next_turn_id}. outcome is
--   appended      recorded; an event that was there already is left out of events
--   turn_ended    nothing recorded: no event of a turn follows its end
--   fenced        nothing recorded: a newer attempt of the step has begun
--   session_gone  nothing recorded
-- next_turn_id: when the turn has ended, the queued turn that is to start next.
CREATE FUNCTION append_events(p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint, p_events jsonb)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_session record;
  v_status turn_status;
  v_fence bigint;
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
  v_has_ended boolean := false;
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
    SELECT fence INTO v_fence FROM turn_steps WHERE turn_id = p_turn_id AND step = p_step;
    IF v_fence > p_fence THEN
      RETURN jsonb_build_object('outcome', 'fenced');
    END IF;
    IF v_fence IS DISTINCT FROM p_fence THEN
      INSERT INTO turn_steps (turn_id, step, fence) VALUES (p_turn_id, p_step, p_fence)
      ON CONFLICT (turn_id, step) DO UPDATE SET fence = excluded.fence;
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
      WHEN 'session.activated' THEN
        v_session_status := 'active';
      WHEN 'turn.started' THEN
        v_turn_status := 'active';
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
      WHEN 'turn.completed', 'turn.failed', 'turn.cancelled' THEN
        v_turn_status := split_part(v_event.type, '.', 2)::turn_status;
        v_error := v_event.data ->> 'error';
        v_error_code := v_event.data ->> 'error_code';
        v_has_ended := true;
      WHEN 'session.idled' THEN
        v_session_status := 'idle';
      ELSE NULL;
    END CASE;
  END LOOP;

  IF v_turn_status IS NOT NULL OR v_usage IS NOT NULL THEN
    UPDATE turns SET
      status = coalesce(v_turn_status, status),
      iterations = iterations + v_reasons,
      started_at = coalesce(started_at, v_ts),
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
      started_at = CASE WHEN v_session_status = 'active' THEN coalesce(started_at, v_ts) ELSE started_at END,
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
    'next_turn_id', CASE WHEN v_has_ended THEN next_queued_turn(p_session_id) END
  );
END $$;

-- Messages are a view of events: the index finds a conversation without reading the deltas in between.
CREATE INDEX events_messages ON events (session_id, sequence)
WHERE type IN ('input.message', 'output.message.completed', 'tool.completed');
