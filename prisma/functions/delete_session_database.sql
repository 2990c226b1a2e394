-- Deletes a database of a session with its pages.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--   p_name                           of the database
--
-- Returns {outcome, …}. `outcome` is
--   deleted       with the `id` of the database
--   missing       the session has no database of this name
--   session_gone  the organization has no such session
--
-- Waits at most a second for a lock, then fails with lock_not_available (55P03).

CREATE OR REPLACE FUNCTION delete_session_database(
  p_organization_id uuid, p_session_id uuid, p_name text
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_refusal jsonb := claim_session_write(p_organization_id, p_session_id, NULL, NULL, NULL);
  v_id uuid;
BEGIN
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  -- The lock comes first: a statement that waited for it would not see pages that others stored meanwhile.
  SELECT id INTO v_id FROM session_databases WHERE session_id = p_session_id AND name = p_name FOR UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'missing');
  END IF;
  DELETE FROM session_database_pages WHERE session_id = p_session_id AND database_id = v_id;
  DELETE FROM session_databases WHERE id = v_id;
  RETURN jsonb_build_object('outcome', 'deleted', 'id', v_id);
END $$;
