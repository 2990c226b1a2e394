-- Records runs of a schedule that are to start: as executions that are pending, or skipped because too many run already.
--
-- Parameters
--   p_organization_id, p_schedule_id  the schedule, which may not be deleted
--   p_ids, p_times                    id and time of each execution, in the order in which they were due
--   p_max_running                     most executions of the organization that run at once
--   p_revision, p_seen, p_until       runs of the clock: the revision and the launched_until of the schedule that the
--                                     caller saw when it decided on what was due up to p_until. Null: started by a user.
--   p_next_times, p_next_times_since  the times after p_until, as in schedules
--
-- Returns {outcome, started}. `outcome` is
--   launched  recorded; `started` has the ids of those that are pending
--   stale     nothing recorded: another launch or a change of the schedule came first
--   gone      nothing recorded: the organization has no such schedule
--
-- Launches of one organization take turns, so that its limit holds. A one-off is disabled with its first launch.

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
  v_problem text;
  v_started jsonb := '[]';
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
  FOR i IN 1 .. cardinality(p_ids) LOOP
    v_problem := CASE
      WHEN v_own >= v_schedule.max_concurrent
        THEN format('Skipped: %s executions of the schedule were running, as many as max_concurrent allows.', v_own)
      WHEN v_all >= p_max_running
        THEN format('Skipped: %s executions of the organization were running, as many as can at once.', v_all)
    END;
    INSERT INTO schedule_executions (id, organization_id, schedule_id, scheduled_at, is_manual, status, error)
    VALUES (
      p_ids[i], p_organization_id, p_schedule_id, p_times[i], v_is_manual,
      CASE WHEN v_problem IS NULL THEN 'pending' ELSE 'skipped' END::schedule_execution_status, v_problem
    ) ON CONFLICT DO NOTHING;
    CONTINUE WHEN NOT FOUND OR v_problem IS NOT NULL;
    v_started := v_started || to_jsonb(p_ids[i]);
    v_own := v_own + 1;
    v_all := v_all + 1;
  END LOOP;

  IF cardinality(p_ids) > 0 THEN
    UPDATE schedules SET last_triggered_at = now() WHERE id = p_schedule_id;
  END IF;
  IF NOT v_is_manual AND v_schedule.is_one_off AND cardinality(p_ids) > 0 THEN
    UPDATE schedules SET
      launched_until = p_until, enabled = false, disabled_reason = 'a one-off that has run',
      revision = revision + 1, clock_due_at = now(), next_times = '{}', next_times_since = NULL
    WHERE id = p_schedule_id;
  ELSIF NOT v_is_manual THEN
    UPDATE schedules SET launched_until = p_until, next_times = p_next_times, next_times_since = p_next_times_since
    WHERE id = p_schedule_id;
  END IF;
  RETURN jsonb_build_object('outcome', 'launched', 'started', v_started);
END $$;
