-- DropForeignKey
ALTER TABLE "events" DROP CONSTRAINT "events_session_id_fkey";

-- DropForeignKey
ALTER TABLE "sessions" DROP CONSTRAINT "sessions_agent_id_fkey";

-- DropIndex
DROP INDEX "sessions_agent_id_created_at_id_idx";

-- AlterTable
ALTER TABLE "agents" DROP CONSTRAINT "agents_pkey",
ADD COLUMN     "request_id" UUID,
ALTER COLUMN "capabilities" SET DATA TYPE JSON,
ALTER COLUMN "tools" SET DATA TYPE JSON,
ADD CONSTRAINT "agents_pkey" PRIMARY KEY ("organization_id", "id");

-- AlterTable
ALTER TABLE "sessions" ALTER COLUMN "capabilities" SET DATA TYPE JSON,
ALTER COLUMN "tools" SET DATA TYPE JSON;

-- CreateTable
CREATE TABLE "session_pins" (
    "user_id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "session_pins_pkey" PRIMARY KEY ("user_id","session_id")
);

-- CreateTable
CREATE TABLE "session_counts" (
    "organization_id" UUID NOT NULL,
    "agent_id" UUID NOT NULL,
    "seconds" INTEGER NOT NULL,
    "start" TIMESTAMPTZ(0) NOT NULL,
    "shard" SMALLINT NOT NULL,
    "count" INTEGER NOT NULL,

    CONSTRAINT "session_counts_pkey" PRIMARY KEY ("organization_id","agent_id","seconds","start","shard")
);

-- CreateTable
CREATE TABLE "deleted_sessions" (
    "id" UUID NOT NULL,
    "turn_ids" UUID[],
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "deleted_sessions_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "idempotency_keys" (
    "organization_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "key" TEXT NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "uuid" UUID NOT NULL,
    "answer" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "idempotency_keys_pkey" PRIMARY KEY ("organization_id","user_id","key")
);

-- CreateIndex
CREATE INDEX "session_pins_session_id_idx" ON "session_pins"("session_id");

-- CreateIndex
CREATE INDEX "deleted_sessions_created_at_idx" ON "deleted_sessions"("created_at");

-- CreateIndex
CREATE INDEX "idempotency_keys_uuid_idx" ON "idempotency_keys"("uuid");

-- CreateIndex
CREATE INDEX "idempotency_keys_created_at_idx" ON "idempotency_keys"("created_at");

-- CreateIndex
CREATE INDEX "sessions_organization_id_agent_id_created_at_id_idx" ON "sessions"("organization_id", "agent_id", "created_at" DESC, "id" DESC);

-- AddForeignKey
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_organization_id_agent_id_fkey" FOREIGN KEY ("organization_id", "agent_id") REFERENCES "agents"("organization_id", "id") ON DELETE NO ACTION ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "session_pins" ADD CONSTRAINT "session_pins_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- From here on by hand: Prisma's schema language cannot express it.

-- Counts every created and deleted session, in the same transaction. Rows are written in one order, so that two
-- transactions never deadlock.
CREATE FUNCTION count_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
  INSERT INTO session_counts AS known (organization_id, agent_id, seconds, start, shard, count)
  SELECT s.organization_id, a.id, u.seconds, date_bin(make_interval(secs => u.seconds), s.created_at, 'epoch'),
    get_byte(uuid_send(s.id), 15) % 4, v_sign * count(*)
  FROM changed s
  CROSS JOIN LATERAL (
    SELECT '00000000-0000-0000-0000-000000000000'::uuid UNION ALL SELECT s.agent_id WHERE s.agent_id IS NOT NULL
  ) AS a (id)
  CROSS JOIN (VALUES (86400), (300)) AS u (seconds)
  GROUP BY 1, 2, 3, 4, 5
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (organization_id, agent_id, seconds, start, shard) DO UPDATE SET count = known.count + excluded.count;
  IF TG_OP = 'DELETE' THEN
    DELETE FROM session_counts c USING changed s
    WHERE c.organization_id = s.organization_id
      AND c.agent_id IN ('00000000-0000-0000-0000-000000000000', s.agent_id)
      AND c.seconds IN (86400, 300) AND c.start = date_bin(make_interval(secs => c.seconds), s.created_at, 'epoch')
      AND c.shard = get_byte(uuid_send(s.id), 15) % 4
      AND c.count = 0;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER sessions_created AFTER INSERT ON sessions REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_sessions();
CREATE TRIGGER sessions_deleted AFTER DELETE ON sessions REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_sessions();

-- A session's data is removed after its row, however the row was deleted.
CREATE FUNCTION note_deleted_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO deleted_sessions (id, turn_ids) SELECT id, '{}' FROM changed ON CONFLICT (id) DO NOTHING;
  RETURN NULL;
END $$;

CREATE TRIGGER sessions_deleted_note AFTER DELETE ON sessions REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_sessions();

-- Counts the existing sessions. The triggers' lock keeps out new ones until the migration ends.
INSERT INTO session_counts (organization_id, agent_id, seconds, start, shard, count)
SELECT s.organization_id, a.id, u.seconds, date_bin(make_interval(secs => u.seconds), s.created_at, 'epoch'),
  get_byte(uuid_send(s.id), 15) % 4, count(*)
FROM sessions s
CROSS JOIN LATERAL (
  SELECT '00000000-0000-0000-0000-000000000000'::uuid UNION ALL SELECT s.agent_id WHERE s.agent_id IS NOT NULL
) AS a (id)
CROSS JOIN (VALUES (86400), (300)) AS u (seconds)
GROUP BY 1, 2, 3, 4, 5;

-- Finds the place after p_skip sessions, newest first, in the list of an organization or an agent; p_left_out does not
-- count. The list continues before the returned time, after `skip` more. No row past the end. Searches days, then parts.
CREATE FUNCTION session_place(p_organization_id uuid, p_agent_id uuid, p_left_out uuid[], p_skip bigint)
RETURNS TABLE (before timestamptz, skip bigint) LANGUAGE sql STABLE AS $$
  WITH left_out AS (
    SELECT created_at FROM sessions WHERE id = ANY (p_left_out)
  ), days AS (
    SELECT start, sum(count) AS count, sum(sum(count)) OVER (ORDER BY start DESC) AS upto FROM (
      SELECT start, count FROM session_counts
      WHERE organization_id = p_organization_id AND agent_id = p_agent_id AND seconds = 86400
      UNION ALL
      SELECT date_bin('1 day', created_at, 'epoch'), -1 FROM left_out
    ) AS counted GROUP BY start
  ), day AS (
    SELECT start, upto - count AS skipped FROM days WHERE upto > p_skip ORDER BY start DESC LIMIT 1
  ), parts AS (
    SELECT start, sum(count) AS count, sum(sum(count)) OVER (ORDER BY start DESC) + (SELECT skipped FROM day) AS upto FROM (
      SELECT start, count FROM session_counts
      WHERE organization_id = p_organization_id AND agent_id = p_agent_id AND seconds = 300
        AND start >= (SELECT start FROM day) AND start < (SELECT start FROM day) + interval '24 hours'
      UNION ALL
      SELECT date_bin('5 minutes', created_at, 'epoch'), -1 FROM left_out
      WHERE created_at >= (SELECT start FROM day) AND created_at < (SELECT start FROM day) + interval '24 hours'
    ) AS counted GROUP BY start
  )
  SELECT start + interval '5 minutes', (p_skip - (upto - count))::bigint
  FROM parts WHERE upto > p_skip ORDER BY start DESC LIMIT 1
$$;

-- Unchanged except for agents, whose key now includes the organization.
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
