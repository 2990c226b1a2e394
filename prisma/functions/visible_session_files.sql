-- Reads files and directories of a session and of its skills by path, in any order, without the session's files that a
-- skill hides. list_session_files lists the same files.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--   p_paths                          the paths

CREATE OR REPLACE FUNCTION visible_session_files(p_organization_id uuid, p_session_id uuid, p_paths text[])
RETURNS SETOF session_files LANGUAGE plpgsql STABLE ROWS 10 AS $$
DECLARE
  v_names text[] := '{}';
BEGIN
  IF NOT EXISTS (SELECT FROM sessions WHERE id = p_session_id AND organization_id = p_organization_id) THEN
    RETURN;
  END IF;
  -- Most paths have nothing to do with skills.
  IF EXISTS (SELECT FROM unnest(p_paths) AS path WHERE starts_with(path, '/skills')) THEN
    v_names := ARRAY(SELECT name FROM active_session_skills(p_organization_id, p_session_id));
  END IF;
  RETURN QUERY
    SELECT f.* FROM session_files f
    WHERE f.session_id = p_session_id AND f.path = ANY (p_paths)
      AND NOT is_hidden_by_skills(f.path, f.is_directory, v_names);
  IF cardinality(v_names) > 0 THEN
    v_names := ARRAY(SELECT DISTINCT split_part(path, '/', 3) FROM unnest(p_paths) AS path);
    RETURN QUERY
      SELECT f.* FROM session_skill_files(p_organization_id, p_session_id, v_names) f WHERE f.path = ANY (p_paths);
  END IF;
END $$;
