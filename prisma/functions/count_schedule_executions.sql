-- Keeps schedule_counts: the number of a schedule's executions in each status, and the total duration of the ended
-- ones. A trigger function, called once for each statement that changes executions, in that statement's transaction.
--
-- Rows are written in a fixed order, so that two statements cannot deadlock. The counts before and after a change are
-- added up first, so a statement that changes no status writes nothing.

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
