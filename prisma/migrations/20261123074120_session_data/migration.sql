-- CreateEnum
CREATE TYPE "call_secret_kind" AS ENUM ('arguments', 'result');

-- CreateTable
CREATE TABLE "session_databases" (
    "id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "page_count" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_databases_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_database_pages" (
    "session_id" UUID NOT NULL,
    "database_id" UUID NOT NULL,
    "number" INTEGER NOT NULL,
    "version" INTEGER NOT NULL,
    "bytes" BYTEA NOT NULL,

    CONSTRAINT "session_database_pages_pkey" PRIMARY KEY ("session_id","database_id","number")
);

-- CreateTable
CREATE TABLE "session_values" (
    "session_id" UUID NOT NULL,
    "key" TEXT COLLATE "C" NOT NULL,
    "value" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_values_pkey" PRIMARY KEY ("session_id","key")
);

-- CreateTable
CREATE TABLE "session_secrets" (
    "session_id" UUID NOT NULL,
    "name" TEXT COLLATE "C" NOT NULL,
    "value" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_secrets_pkey" PRIMARY KEY ("session_id","name")
);

-- CreateTable
CREATE TABLE "call_secrets" (
    "session_id" UUID NOT NULL,
    "turn_id" UUID NOT NULL,
    "step" TEXT NOT NULL,
    "kind" "call_secret_kind" NOT NULL,
    "value" BYTEA NOT NULL,

    CONSTRAINT "call_secrets_pkey" PRIMARY KEY ("session_id","turn_id","step","kind")
);

-- CreateIndex
CREATE UNIQUE INDEX "session_databases_session_id_name_key" ON "session_databases"("session_id", "name");

-- AddForeignKey
ALTER TABLE "session_databases" ADD CONSTRAINT "session_databases_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Reading is more frequent than writing, and decompressing takes longer than reading.
ALTER TABLE "session_database_pages" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;

-- For the check of the encryption keys at the start (platform/secrets/key-ring.ts).
CREATE INDEX "session_secrets_value_header" ON "session_secrets" (substring("value" FROM 1 FOR 9));
CREATE INDEX "call_secrets_value_header" ON "call_secrets" (substring("value" FROM 1 FOR 9));

-- Copied from prisma/functions/change_session_storage.sql, which has the manual.
CREATE OR REPLACE FUNCTION change_session_storage(
  p_organization_id uuid, p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint,
  p_do text, p_name text, p_value text, p_secret bytea, p_max_count integer, p_max_bytes bigint
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  -- Distinguishes these advisory locks from others; any number will do.
  c_lock CONSTANT integer := 1927;
  v_of_secrets boolean := p_do IN ('set_secret', 'delete_secret');
  v_now timestamptz(3);
  v_size bigint := coalesce(octet_length(p_value), octet_length(p_secret));
  v_refusal jsonb;
  v_kept record;
  v_answer jsonb;
BEGIN
  v_refusal := claim_session_write(p_organization_id, p_session_id, p_turn_id, p_step, p_fence);
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  PERFORM pg_advisory_xact_lock(c_lock, hashtext(p_session_id::text));
  -- Taken under the lock, so that times are in the order of the changes.
  v_now := clock_timestamp();
  IF is_call_completed(p_turn_id, p_step) THEN
    RETURN jsonb_build_object('outcome', 'fenced');
  END IF;

  -- The lengths are known without reading the values, which are stored apart.
  SELECT coalesce(sum(size), 0) AS bytes, count(*) FILTER (WHERE is_secret = v_of_secrets) AS count,
    max(size) FILTER (WHERE is_secret = v_of_secrets AND name = p_name) AS old_size
  INTO v_kept
  FROM (
    SELECT false AS is_secret, key AS name, octet_length(value)::bigint AS size
    FROM session_values WHERE session_id = p_session_id
    UNION ALL
    SELECT true, name, octet_length(value) FROM session_secrets WHERE session_id = p_session_id
  ) AS kept;
  IF v_size IS NOT NULL AND v_kept.old_size IS NULL AND v_kept.count >= p_max_count THEN
    RETURN jsonb_build_object('outcome', 'refused', 'problem', 'too_many');
  END IF;
  IF v_size > coalesce(v_kept.old_size, 0) AND v_kept.bytes - coalesce(v_kept.old_size, 0) + v_size > p_max_bytes THEN
    RETURN jsonb_build_object('outcome', 'refused', 'problem', 'too_large');
  END IF;

  CASE p_do
    WHEN 'set_value' THEN
      INSERT INTO session_values (session_id, key, value, created_at, updated_at)
      VALUES (p_session_id, p_name, p_value, v_now, v_now)
      ON CONFLICT (session_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at;
    WHEN 'set_secret' THEN
      INSERT INTO session_secrets (session_id, name, value, created_at, updated_at)
      VALUES (p_session_id, p_name, p_secret, v_now, v_now)
      ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at;
    WHEN 'delete_value' THEN
      DELETE FROM session_values WHERE session_id = p_session_id AND key = p_name;
    WHEN 'delete_secret' THEN
      DELETE FROM session_secrets WHERE session_id = p_session_id AND name = p_name;
  END CASE;
  v_answer := jsonb_build_object('existed', v_kept.old_size IS NOT NULL);
  UPDATE turn_steps SET effect = v_answer WHERE turn_id = p_turn_id AND step = p_step;
  RETURN v_answer || jsonb_build_object('outcome', 'changed');
END $$;

-- Copied from prisma/functions/create_session_database.sql, which has the manual.
CREATE OR REPLACE FUNCTION create_session_database(
  p_organization_id uuid, p_session_id uuid, p_id uuid, p_name text, p_max_count integer
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_refusal jsonb := claim_session_write(p_organization_id, p_session_id, NULL, NULL, NULL);
  v_now timestamptz(3) := clock_timestamp();
BEGIN
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  -- Lets one transaction at a time count the databases.
  PERFORM pg_advisory_xact_lock(hashtextextended('session_databases ' || p_session_id, 0));
  IF EXISTS (SELECT FROM session_databases WHERE id = p_id OR session_id = p_session_id AND name = p_name) THEN
    RETURN jsonb_build_object('outcome', 'exists');
  END IF;
  IF (SELECT count(*) FROM session_databases WHERE session_id = p_session_id) >= p_max_count THEN
    RETURN jsonb_build_object('outcome', 'too_many');
  END IF;
  INSERT INTO session_databases (id, session_id, name, created_at, updated_at)
  VALUES (p_id, p_session_id, p_name, v_now, v_now);
  RETURN jsonb_build_object('outcome', 'created');
END $$;

-- Copied from prisma/functions/delete_session_database.sql, which has the manual.
CREATE OR REPLACE FUNCTION delete_session_database(
  p_organization_id uuid, p_session_id uuid, p_name text
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_refusal jsonb := claim_session_write(p_organization_id, p_session_id, NULL, NULL, NULL);
  v_id uuid;
BEGIN
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  -- The lock comes first: a statement that waited for it would not see pages that others stored meanwhile.
  SELECT id INTO v_id FROM session_databases WHERE session_id = p_session_id AND name = p_name FOR UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'missing');
  END IF;
  DELETE FROM session_database_pages WHERE session_id = p_session_id AND database_id = v_id;
  DELETE FROM session_databases WHERE id = v_id;
  RETURN jsonb_build_object('outcome', 'deleted', 'id', v_id);
END $$;

-- Copied from prisma/functions/store_session_database.sql, which has the manual.
CREATE OR REPLACE FUNCTION store_session_database(
  p_organization_id uuid, p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint,
  p_id uuid, p_version integer, p_name text, p_max_count integer,
  p_page_count integer, p_numbers integer[], p_bytes bytea, p_effect jsonb
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  c_page CONSTANT integer := 4096;
  v_answer jsonb;
  v_database session_databases;
BEGIN
  v_answer := claim_session_write(p_organization_id, p_session_id, p_turn_id, p_step, p_fence);
  IF v_answer IS NOT NULL THEN
    RETURN v_answer;
  END IF;
  IF p_name IS NOT NULL THEN
    v_answer := create_session_database(p_organization_id, p_session_id, p_id, p_name, p_max_count);
    IF v_answer ->> 'outcome' <> 'created' THEN
      RETURN v_answer;
    END IF;
  END IF;
  SELECT * INTO v_database FROM session_databases WHERE id = p_id AND session_id = p_session_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'gone');
  END IF;
  IF is_call_completed(p_turn_id, p_step) THEN
    IF p_name IS NOT NULL THEN
      DELETE FROM session_databases WHERE id = p_id;
    END IF;
    RETURN jsonb_build_object('outcome', 'fenced');
  END IF;
  IF v_database.version <> p_version THEN
    RETURN jsonb_build_object('outcome', 'conflict');
  END IF;

  IF cardinality(p_numbers) > 0 THEN
    INSERT INTO session_database_pages AS p (session_id, database_id, number, version, bytes)
    SELECT p_session_id, p_id, n.number, p_version + 1, substring(p_bytes FROM (n.place - 1)::integer * c_page + 1 FOR c_page)
    FROM unnest(p_numbers) WITH ORDINALITY AS n (number, place)
    ON CONFLICT (session_id, database_id, number) DO UPDATE SET version = excluded.version, bytes = excluded.bytes;
    DELETE FROM session_database_pages
    WHERE session_id = p_session_id AND database_id = p_id AND number > p_page_count;
    UPDATE session_databases SET version = version + 1, page_count = p_page_count, updated_at = clock_timestamp()
    WHERE id = p_id;
  END IF;
  IF p_turn_id IS NOT NULL THEN
    UPDATE turn_steps SET effect = p_effect WHERE turn_id = p_turn_id AND step = p_step;
  END IF;
  RETURN jsonb_build_object('outcome', 'stored');
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
