-- CreateEnum
CREATE TYPE "schedule_execution_status" AS ENUM ('pending', 'running', 'completed', 'failed', 'skipped');

-- CreateTable
CREATE TABLE "schedules" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "cron_expression" TEXT NOT NULL,
    "timezone" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "disabled_reason" TEXT,
    "is_one_off" BOOLEAN NOT NULL DEFAULT false,
    "catch_up_missed" BOOLEAN NOT NULL,
    "max_catch_up" INTEGER,
    "max_concurrent" INTEGER,
    "retry_policy" JSONB,
    "target_type" TEXT NOT NULL,
    "target_name" TEXT NOT NULL,
    "target_input" JSONB NOT NULL,
    "target_headers" BYTEA,
    "session_id" UUID,
    "tool_name" TEXT,
    "revision" INTEGER NOT NULL DEFAULT 1,
    "clock_due_at" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,
    "clock_leased_until" TIMESTAMPTZ(3),
    "launched_until" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "next_times" TIMESTAMPTZ(3)[] DEFAULT ARRAY[]::TIMESTAMPTZ(3)[],
    "next_times_since" TIMESTAMPTZ(3),
    "last_triggered_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(3),

    CONSTRAINT "schedules_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "schedule_executions" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "schedule_id" UUID NOT NULL,
    "scheduled_at" TIMESTAMPTZ(3) NOT NULL,
    "is_manual" BOOLEAN NOT NULL DEFAULT false,
    "status" "schedule_execution_status" NOT NULL,
    "error" TEXT,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "settled_attempt" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(3),
    "completed_at" TIMESTAMPTZ(3),
    "notice_due_at" TIMESTAMPTZ(3),

    CONSTRAINT "schedule_executions_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "schedule_counts" (
    "schedule_id" UUID NOT NULL,
    "status" "schedule_execution_status" NOT NULL,
    "count" INTEGER NOT NULL,
    "duration_ms" BIGINT NOT NULL,

    CONSTRAINT "schedule_counts_pkey" PRIMARY KEY ("schedule_id","status")
);

-- CreateIndex
CREATE INDEX "schedule_executions_schedule_id_id_idx" ON "schedule_executions"("schedule_id", "id" DESC);

-- CreateIndex
CREATE INDEX "schedule_executions_schedule_id_status_id_idx" ON "schedule_executions"("schedule_id", "status", "id" DESC);

-- CreateIndex
CREATE INDEX "schedule_executions_created_at_idx" ON "schedule_executions"("created_at");

-- AddForeignKey
ALTER TABLE "schedules" ADD CONSTRAINT "schedules_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule_executions" ADD CONSTRAINT "schedule_executions_schedule_id_fkey" FOREIGN KEY ("schedule_id") REFERENCES "schedules"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule_counts" ADD CONSTRAINT "schedule_counts_schedule_id_fkey" FOREIGN KEY ("schedule_id") REFERENCES "schedules"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- From here on by hand: Prisma's schema language cannot express it.

-- Names are unique; a deleted schedule no longer has one.
CREATE UNIQUE INDEX "schedules_name" ON "schedules"("organization_id", "name") WHERE "deleted_at" IS NULL;
CREATE UNIQUE INDEX "schedules_tool_name" ON "schedules"("session_id", "tool_name") WHERE "deleted_at" IS NULL;
-- For an organization's list, without the deleted schedules.
CREATE INDEX "schedules_live" ON "schedules"("organization_id", "id" DESC) WHERE "deleted_at" IS NULL;
-- Schedules of a session.
CREATE INDEX "schedules_session" ON "schedules"("session_id") WHERE "session_id" IS NOT NULL;
-- For retention, which erases and removes deleted schedules.
CREATE INDEX "schedules_deleted" ON "schedules"("deleted_at") WHERE "deleted_at" IS NOT NULL;
-- For changes that Temporal has not been notified of.
CREATE INDEX "schedules_clock_due" ON "schedules"("clock_due_at") WHERE "clock_due_at" IS NOT NULL;
-- For overdue runs.
CREATE INDEX "schedules_next" ON "schedules"(("next_times"[1])) WHERE "enabled" AND "deleted_at" IS NULL;
-- Each time of the clock is launched once.
CREATE UNIQUE INDEX "schedule_executions_once" ON "schedule_executions"("schedule_id", "scheduled_at") WHERE NOT "is_manual";
-- For executions that have not ended.
CREATE INDEX "schedule_executions_unfinished" ON "schedule_executions"("organization_id", "schedule_id")
  WHERE "status" IN ('pending', 'running');
CREATE INDEX "schedule_executions_notice" ON "schedule_executions"("notice_due_at") WHERE "notice_due_at" IS NOT NULL;

-- Copied from prisma/functions/end_scheduled_execution.sql, which has the manual.
CREATE OR REPLACE FUNCTION end_scheduled_execution() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE schedule_executions SET
    status = CASE NEW.status WHEN 'completed' THEN 'completed' ELSE 'failed' END::schedule_execution_status,
    error = CASE NEW.status
      WHEN 'completed' THEN NULL
      WHEN 'cancelled' THEN 'The turn was cancelled.'
      ELSE coalesce(NEW.error, 'The turn failed.')
    END,
    completed_at = NEW.finished_at,
    notice_due_at = NEW.finished_at
  WHERE id = NEW.id AND status IN ('pending', 'running');
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER turns_ended AFTER UPDATE OF finished_at ON turns
FOR EACH ROW WHEN (OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL) EXECUTE FUNCTION end_scheduled_execution();

-- Copied from prisma/functions/note_deleted_sessions.sql, which has the manual.
CREATE OR REPLACE FUNCTION note_deleted_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO deleted_sessions (id, turn_ids) SELECT id, '{}' FROM changed ON CONFLICT (id) DO NOTHING;
  UPDATE schedules SET
    deleted_at = coalesce(deleted_at, now()), updated_at = now(), enabled = false, name = id::text, description = NULL,
    target_input = '{}', target_headers = NULL, session_id = NULL, tool_name = NULL,
    revision = revision + 1, clock_due_at = now()
  WHERE session_id IN (SELECT id FROM changed);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER sessions_deleted_note AFTER DELETE ON sessions REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_sessions();

-- Copied from prisma/functions/count_schedule_executions.sql, which has the manual.
CREATE OR REPLACE FUNCTION count_schedule_executions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_changes jsonb := '[]';
BEGIN
  IF TG_OP <> 'INSERT' THEN
    SELECT v_changes || coalesce(jsonb_agg(jsonb_build_array(
      schedule_id, status, -1, -coalesce(extract(epoch FROM completed_at - started_at) * 1000, 0)::bigint)), '[]')
    INTO v_changes FROM before;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    SELECT v_changes || coalesce(jsonb_agg(jsonb_build_array(
      schedule_id, status, 1, coalesce(extract(epoch FROM completed_at - started_at) * 1000, 0)::bigint)), '[]')
    INTO v_changes FROM after;
  END IF;
  INSERT INTO schedule_counts AS known (schedule_id, status, count, duration_ms)
  SELECT (c ->> 0)::uuid, (c ->> 1)::schedule_execution_status, sum((c ->> 2)::integer), sum((c ->> 3)::bigint)
  FROM jsonb_array_elements(v_changes) AS c
  WHERE EXISTS (SELECT FROM schedules WHERE id = (c ->> 0)::uuid)
  GROUP BY 1, 2 HAVING sum((c ->> 2)::integer) <> 0 OR sum((c ->> 3)::bigint) <> 0
  ORDER BY 1, 2
  ON CONFLICT (schedule_id, status) DO UPDATE
  SET count = known.count + excluded.count, duration_ms = known.duration_ms + excluded.duration_ms;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER schedule_executions_created AFTER INSERT ON schedule_executions REFERENCING NEW TABLE AS after
FOR EACH STATEMENT EXECUTE FUNCTION count_schedule_executions();
CREATE OR REPLACE TRIGGER schedule_executions_changed AFTER UPDATE ON schedule_executions
REFERENCING OLD TABLE AS before NEW TABLE AS after
FOR EACH STATEMENT EXECUTE FUNCTION count_schedule_executions();
CREATE OR REPLACE TRIGGER schedule_executions_deleted AFTER DELETE ON schedule_executions REFERENCING OLD TABLE AS before
FOR EACH STATEMENT EXECUTE FUNCTION count_schedule_executions();

-- Copied from prisma/functions/launch_executions.sql, which has the manual.
CREATE OR REPLACE FUNCTION launch_executions(
  p_organization_id uuid, p_schedule_id uuid, p_ids uuid[], p_times timestamptz[], p_max_running integer,
  p_revision integer, p_seen timestamptz, p_until timestamptz,
  p_next_times timestamptz[], p_next_times_since timestamptz
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_schedule record;
  v_is_manual boolean := p_revision IS NULL;
  v_all integer;
  v_own integer;
  v_skipped integer;
  v_problem text;
  v_started jsonb;
BEGIN
  PERFORM FROM organizations WHERE id = p_organization_id FOR NO KEY UPDATE;
  SELECT * INTO v_schedule FROM schedules
  WHERE id = p_schedule_id AND organization_id = p_organization_id AND deleted_at IS NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'gone');
  END IF;
  IF NOT v_is_manual AND (
    NOT v_schedule.enabled OR v_schedule.revision <> p_revision OR v_schedule.launched_until <> p_seen
  ) THEN
    RETURN jsonb_build_object('outcome', 'stale');
  END IF;

  SELECT count(*), count(*) FILTER (WHERE schedule_id = p_schedule_id) INTO v_all, v_own
  FROM schedule_executions WHERE organization_id = p_organization_id AND status IN ('pending', 'running');
  -- Where not all can run, the latest do.
  v_skipped := greatest(0, cardinality(p_ids) - least(p_max_running - v_all, nullif(v_schedule.max_concurrent, 0) - v_own));
  v_problem := CASE
    WHEN p_max_running - v_all <= coalesce(nullif(v_schedule.max_concurrent, 0) - v_own, p_max_running)
      THEN format('Skipped: the organization may have %s executions at once.', p_max_running)
    ELSE format('Skipped: max_concurrent allows %s executions of the schedule at once.', v_schedule.max_concurrent)
  END;
  WITH recorded AS (
    INSERT INTO schedule_executions (id, organization_id, schedule_id, scheduled_at, is_manual, status, error)
    SELECT run.id, p_organization_id, p_schedule_id, run.at, v_is_manual,
      CASE WHEN place > v_skipped THEN 'pending' ELSE 'skipped' END::schedule_execution_status,
      CASE WHEN place <= v_skipped THEN v_problem END
    FROM unnest(p_ids, p_times) WITH ORDINALITY AS run (id, at, place)
    ON CONFLICT DO NOTHING
    RETURNING id, status
  )
  SELECT coalesce(jsonb_agg(id) FILTER (WHERE status = 'pending'), '[]') INTO v_started FROM recorded;

  IF cardinality(p_ids) > 0 THEN
    UPDATE schedules SET last_triggered_at = now() WHERE id = p_schedule_id;
  END IF;
  IF NOT v_is_manual AND v_schedule.is_one_off AND cardinality(p_ids) > 0 THEN
    UPDATE schedules SET
      launched_until = p_until, enabled = false, disabled_reason = 'a one-off that has run', updated_at = now(),
      revision = revision + 1, clock_due_at = now(), next_times = '{}', next_times_since = NULL
    WHERE id = p_schedule_id;
  ELSIF NOT v_is_manual THEN
    UPDATE schedules SET
      launched_until = p_until, next_times = p_next_times, next_times_since = p_next_times_since,
      clock_due_at = CASE WHEN p_next_times_since IS NULL THEN now() ELSE clock_due_at END
    WHERE id = p_schedule_id;
  END IF;
  RETURN jsonb_build_object('outcome', 'launched', 'started', v_started);
END $$;
