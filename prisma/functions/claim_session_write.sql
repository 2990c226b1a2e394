-- Begins a change of a session's data, by a tool call or by a user: checks that the writer may write, and locks the
-- rows that must outlive the change.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--   p_turn_id, p_step, p_fence       the attempt of a tool call that writes (see turn_steps); null for other writers
--
-- Returns null when the change may be made, otherwise {outcome, …}. `outcome` is
--   repeated      an earlier attempt of the call made the change, but did not record its result; with `effect`, which
--                 that attempt stored
--   turn_ended    a tool of a turn that has ended writes nothing
--   fenced        a newer attempt of the call has begun, or the call has its result
--   session_gone  the organization has no such session
--
-- A caller that changes something for a call sets turn_steps.effect in the same transaction. After waiting for a lock
-- of its own, it checks is_call_completed.
--
-- Waits at most a second for a lock, in the whole transaction, then fails with lock_not_available (55P03): a waiting
-- tool call holds the lock of its turn, for which a cancellation waits. The caller tries again.
--
-- Locks are taken in an order that no cancellation or deletion crosses: turn, step, session, then the data's own locks.
-- Turn and step stay locked until the end, so neither can end during the write.
--
-- In a session that keeps snapshots, sets agent_sessions.stamp for the transaction, for keep_snapshot.

CREATE OR REPLACE FUNCTION claim_session_write(
  p_organization_id uuid, p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_status turn_status;
  v_step record;
  v_snapshots_since bigint;
BEGIN
  PERFORM set_config('lock_timeout', '1s', true);
  IF p_turn_id IS NOT NULL THEN
    SELECT status INTO v_status FROM turns WHERE id = p_turn_id AND session_id = p_session_id FOR SHARE;
    IF NOT FOUND THEN
      RETURN jsonb_build_object('outcome', 'session_gone');
    END IF;
    IF v_status IN ('completed', 'failed', 'cancelled') THEN
      RETURN jsonb_build_object('outcome', 'turn_ended');
    END IF;
    SELECT fence, effect INTO v_step FROM turn_steps
    WHERE turn_id = p_turn_id AND step = p_step FOR NO KEY UPDATE;
    IF NOT FOUND OR v_step.fence <> p_fence THEN
      RETURN jsonb_build_object('outcome', 'fenced');
    END IF;
    IF v_step.effect IS NOT NULL THEN
      RETURN jsonb_build_object('outcome', 'repeated', 'effect', v_step.effect);
    END IF;
  END IF;
  SELECT snapshots_since INTO v_snapshots_since
  FROM sessions WHERE id = p_session_id AND organization_id = p_organization_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  IF v_snapshots_since IS NOT NULL THEN
    -- Nothing before the first message is ever asked for.
    PERFORM set_config('agent_sessions.stamp', coalesce(
      (SELECT 2 * min(input_sequence)::bigint FROM turns WHERE session_id = p_session_id AND finished_at IS NULL),
      (SELECT 2 * max(input_sequence)::bigint + 1 FROM turns WHERE session_id = p_session_id)
    )::text, true);
  END IF;
  RETURN NULL;
END $$;
