-- Adds an empty database to a session. Nothing else inserts into session_databases.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--   p_id, p_name                     of the database
--   p_max_count                      limit on the session's databases
--
-- Returns {outcome}. `outcome` is
--   created
--   exists        the session has a database of this name, or there is one with this id
--   too_many      the session has p_max_count databases already
--   session_gone  the organization has no such session
--
-- Waits at most a second for a lock, then fails with lock_not_available (55P03).

CREATE OR REPLACE FUNCTION create_session_database(
  p_organization_id uuid, p_session_id uuid, p_id uuid, p_name text, p_max_count integer
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_refusal jsonb := claim_session_write(p_organization_id, p_session_id, NULL, NULL, NULL);
  v_now timestamptz(3) := clock_timestamp();
BEGIN
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  -- Lets one transaction at a time count the databases.
  PERFORM pg_advisory_xact_lock(hashtextextended('session_databases ' || p_session_id, 0));
  IF EXISTS (SELECT FROM session_databases WHERE id = p_id OR session_id = p_session_id AND name = p_name) THEN
    RETURN jsonb_build_object('outcome', 'exists');
  END IF;
  IF (SELECT count(*) FROM session_databases WHERE session_id = p_session_id) >= p_max_count THEN
    RETURN jsonb_build_object('outcome', 'too_many');
  END IF;
  INSERT INTO session_databases (id, session_id, name, created_at, updated_at)
  VALUES (p_id, p_session_id, p_name, v_now, v_now);
  RETURN jsonb_build_object('outcome', 'created');
END $$;
