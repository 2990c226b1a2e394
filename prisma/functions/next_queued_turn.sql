-- Returns the turn at the head of a session's queue if it has yet to be started.
-- Returns null when the head has already been started, or when every turn has ended.
--
-- A session runs one turn at a time. The caller that ends a turn starts the one returned here, and record_events
-- refuses the first append of any other. Call it under the session's lock; otherwise the result may be out of date.

CREATE OR REPLACE FUNCTION next_queued_turn(p_session_id uuid) RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN status = 'queued' THEN id END FROM turns
  WHERE session_id = p_session_id AND finished_at IS NULL
  ORDER BY input_sequence LIMIT 1
$$;
