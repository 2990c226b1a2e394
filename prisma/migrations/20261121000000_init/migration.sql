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

-- From here on by hand: what Prisma's schema language has no words for.

INSERT INTO organizations (id, name, updated_at)
VALUES ('00000000-0000-0000-0000-000000000001', 'Default Organization', now());

-- Turns that still have to run: small however long the history is, so the sweeper and every append stay cheap.
CREATE INDEX turns_unfinished ON turns (session_id, input_sequence) WHERE finished_at IS NULL;

-- An event of a turn happens once, whatever is run twice. These three start over when a step is tried again.
CREATE UNIQUE INDEX events_once ON events (turn_id, type, step)
WHERE type NOT IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta');

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
-- next_turn_id: when the turn has ended, the queued turn whose place it is now.
CREATE FUNCTION append_events(p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint, p_events jsonb)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_session record;
  v_status turn_status;
  v_fence bigint;
  v_ts timestamptz(3) := clock_timestamp();
  v_others boolean;
  v_count integer;
  v_rows jsonb;
  v_types text[];
BEGIN
  SELECT last_sequence, started_at IS NOT NULL AS has_started INTO v_session
  FROM sessions WHERE id = p_session_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;

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

  v_others := EXISTS (
    SELECT FROM turns WHERE session_id = p_session_id AND finished_at IS NULL AND id <> p_turn_id
  );

  WITH wanted AS (
    SELECT e.value AS event, e.value ->> 'type' AS type, coalesce(e.value ->> 'step', '') AS step, e.ordinality
    FROM jsonb_array_elements(p_events) WITH ORDINALITY AS e
    WHERE NOT (e.value ->> 'type' = 'session.started' AND v_session.has_started)
      AND NOT (e.value ->> 'type' = 'session.idled' AND v_others)
  ), numbered AS (
    SELECT *, v_session.last_sequence + row_number() OVER (ORDER BY ordinality) AS sequence
    FROM wanted
    WHERE type IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta')
      OR NOT EXISTS (
        SELECT FROM events seen
        WHERE seen.turn_id = p_turn_id AND seen.type = wanted.type AND seen.step = wanted.step
          AND seen.type NOT IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta')
      )
  ), inserted AS (
    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    SELECT p_session_id, sequence, type, v_ts, p_turn_id, step, (event ->> 'exec_id')::uuid, event -> 'data'
    FROM numbered
  )
  SELECT count(*), coalesce(jsonb_agg(jsonb_build_array(ordinality, sequence) ORDER BY sequence), '[]'), array_agg(type)
  INTO v_count, v_rows, v_types
  FROM numbered;

  IF v_count > 0 THEN
    UPDATE sessions SET last_sequence = last_sequence + v_count, updated_at = v_ts WHERE id = p_session_id;
    -- Most appends are deltas, which announce nothing.
    IF NOT v_types <@ ARRAY['output.message.started', 'output.message.delta', 'reason.thinking.delta'] THEN
      PERFORM project_events(p_session_id, p_turn_id, v_session.last_sequence, v_ts);
    END IF;
  END IF;

  RETURN jsonb_build_object(
    'outcome', 'appended',
    'events', v_rows,
    'ts', v_ts,
    'next_turn_id', CASE WHEN v_types && ARRAY['turn.completed', 'turn.failed', 'turn.cancelled']
      THEN next_queued_turn(p_session_id) END
  );
END $$;

CREATE FUNCTION next_queued_turn(p_session_id uuid) RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT id FROM turns
  WHERE session_id = p_session_id AND finished_at IS NULL AND status = 'queued'
  ORDER BY input_sequence LIMIT 1
$$;

-- The state that the events after p_after announce. The only writer of a turn's and a session's status.
CREATE FUNCTION project_events(p_session_id uuid, p_turn_id uuid, p_after integer, p_ts timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_event record;
BEGIN
  FOR v_event IN
    SELECT type, data FROM events WHERE session_id = p_session_id AND sequence > p_after ORDER BY sequence
  LOOP
    CASE v_event.type
      WHEN 'session.activated' THEN
        UPDATE sessions SET status = 'active', started_at = coalesce(started_at, p_ts) WHERE id = p_session_id;
      WHEN 'turn.started' THEN
        UPDATE turns SET status = 'active', started_at = p_ts WHERE id = p_turn_id;
      WHEN 'reason.started' THEN
        UPDATE turns SET status = 'active', iterations = iterations + 1 WHERE id = p_turn_id;
        UPDATE sessions SET status = 'active' WHERE id = p_session_id AND status <> 'active';
      WHEN 'output.message.completed' THEN
        UPDATE sessions SET output_preview = left((
          SELECT string_agg(part ->> 'text', '') FROM jsonb_array_elements(v_event.data #> '{message,content}') AS part
          WHERE part ->> 'type' = 'text'
        ), 200) WHERE id = p_session_id;
      WHEN 'reason.completed' THEN
        PERFORM add_usage(p_session_id, p_turn_id, v_event.data -> 'usage');
      WHEN 'tool.call_requested' THEN
        UPDATE turns SET status = 'waiting' WHERE id = p_turn_id;
        UPDATE sessions SET status = 'waitingfortoolresults' WHERE id = p_session_id;
      WHEN 'turn.completed', 'turn.failed', 'turn.cancelled' THEN
        UPDATE turns SET
          status = split_part(v_event.type, '.', 2)::turn_status,
          error = v_event.data ->> 'error',
          error_code = v_event.data ->> 'error_code',
          finished_at = p_ts
        WHERE id = p_turn_id;
      WHEN 'session.idled' THEN
        UPDATE sessions SET status = 'idle', finished_at = p_ts WHERE id = p_session_id;
      ELSE NULL;
    END CASE;
  END LOOP;
END $$;

-- p_usage: a TokenUsage or null. Sums it into the turn, its session and the session's agent.
CREATE FUNCTION add_usage(p_session_id uuid, p_turn_id uuid, p_usage jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_input bigint := coalesce((p_usage ->> 'input_tokens')::bigint, 0);
  v_output bigint := coalesce((p_usage ->> 'output_tokens')::bigint, 0);
  v_read bigint := coalesce((p_usage ->> 'cache_read_tokens')::bigint, 0);
  v_creation bigint := coalesce((p_usage ->> 'cache_creation_tokens')::bigint, 0);
BEGIN
  UPDATE turns SET
    input_tokens = input_tokens + v_input, output_tokens = output_tokens + v_output,
    cache_read_tokens = cache_read_tokens + v_read, cache_creation_tokens = cache_creation_tokens + v_creation
  WHERE id = p_turn_id;
  UPDATE sessions SET
    input_tokens = input_tokens + v_input, output_tokens = output_tokens + v_output,
    cache_read_tokens = cache_read_tokens + v_read, cache_creation_tokens = cache_creation_tokens + v_creation
  WHERE id = p_session_id;
  UPDATE agents SET
    input_tokens = input_tokens + v_input, output_tokens = output_tokens + v_output,
    cache_read_tokens = cache_read_tokens + v_read, cache_creation_tokens = cache_creation_tokens + v_creation
  WHERE id = (SELECT agent_id FROM sessions WHERE id = p_session_id);
END $$;

-- Messages are a view of events; the conversation is read without touching the deltas in between.
CREATE INDEX events_messages ON events (session_id, sequence)
WHERE type IN ('input.message', 'output.message.completed', 'tool.completed');
