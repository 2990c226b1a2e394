-- Tells whether a tool call has its result. A call that timed out gets one while it still waits to write. False without
-- a call.

CREATE OR REPLACE FUNCTION is_call_completed(p_turn_id uuid, p_step text) RETURNS boolean LANGUAGE sql AS $$
  SELECT p_turn_id IS NOT NULL AND EXISTS (
    SELECT FROM events WHERE turn_id = p_turn_id AND type = 'tool.completed' AND step = p_step
  )
$$;
