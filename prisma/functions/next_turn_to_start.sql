-- Returns the turn at the head of a session's queue for the caller to start, as next_queued_turn does. Returns null for a
-- child turn: the workflow of the call that asks starts it.

CREATE OR REPLACE FUNCTION next_turn_to_start(p_session_id uuid) RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT id FROM turns WHERE id = next_queued_turn(p_session_id) AND ancestors IS NULL
$$;
