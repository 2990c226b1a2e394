-- Records due runs of a schedule as executions: pending, or skipped if too many run already.
--
-- Parameters
--   p_organization_id, p_schedule_id  the schedule, which may not be deleted
--   p_ids, p_times                    id and time of each execution, in the order in which they were due
--   p_max_running                     limit on executions that run at once in all of the owner's organizations; without
--                                     an owner, in this one
--   p_revision, p_seen, p_until       runs of the clock: revision and launched_until of the schedule when the caller
--                                     decided which runs were due up to p_until. Null: started by a user.
--   p_next_times, p_next_times_since  the times after p_until, as in schedules. If the latter is null, Temporal must be
--                                     notified of the schedule again.
--
-- Returns {outcome, started}. `outcome` is
--   launched  recorded; `started` has the ids of the pending executions
--   stale     nothing recorded: another launch or a change of the schedule came first
--   gone      nothing recorded: the organization has no such schedule
--
-- Launches of one owner take turns, so that the limit holds. A one-off is disabled with its first launch.

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
  v_owner_id uuid;
  v_started jsonb;
BEGIN
  SELECT owner_id INTO v_owner_id FROM organizations WHERE id = p_organization_id FOR NO KEY UPDATE;
  PERFORM FROM users WHERE id = v_owner_id FOR NO KEY UPDATE;
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
  FROM schedule_executions
  WHERE status IN ('pending', 'running') AND organization_id = ANY (
    array_append(ARRAY(SELECT id FROM organizations WHERE owner_id = v_owner_id), p_organization_id)
  );
  -- Where not all can run, the latest do.
  v_skipped := greatest(0, cardinality(p_ids) - least(p_max_running - v_all, nullif(v_schedule.max_concurrent, 0) - v_own));
  v_problem := CASE
    WHEN p_max_running - v_all <= coalesce(nullif(v_schedule.max_concurrent, 0) - v_own, p_max_running)
      THEN format('Skipped: the organizations of the owner may have %s executions at once.', p_max_running)
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
