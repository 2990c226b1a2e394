-- Returns the turn at the head of a session's queue if it has yet to be started.
-- Null when the head has been started already, or when no turn is unfinished: then there is nothing to start.
--
-- One turn of a session runs at a time. Whoever ends a turn starts the one that this names, and record_events refuses
-- the first append of any other. Ask under the session's lock, or expect an answer that is out of date.

CREATE OR REPLACE FUNCTION next_queued_turn(p_session_id uuid) RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN status = 'queued' THEN id END FROM turns
  WHERE session_id = p_session_id AND finished_at IS NULL
  ORDER BY input_sequence LIMIT 1
$$;
