-- Lists files and directories of a session and of its skills by path, without the session's files that a skill hides.
-- visible_session_files reads the same files.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--   p_after, p_before                only paths between these two, both exclusive
--   p_is_directory                   true for directories alone, false for files alone, null for both
--   p_start                          only paths without a slash from this position on; null for all
--   p_limit                          maximum number of rows; null for all

CREATE OR REPLACE FUNCTION list_session_files(
  p_organization_id uuid, p_session_id uuid, p_after text, p_before text, p_is_directory boolean, p_start integer,
  p_limit integer
) RETURNS SETOF session_files LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_names text[] := '{}';
  -- Names of the skills that have files between the paths.
  v_wanted text[];
  v_skill record;
  v_first text[] := '{}';
  v_count bigint := 0;
BEGIN
  IF NOT EXISTS (SELECT FROM sessions WHERE id = p_session_id AND organization_id = p_organization_id) THEN
    RETURN;
  END IF;
  IF p_after < '/skills0' COLLATE "C" AND p_before > '/skills' COLLATE "C" THEN
    v_names := ARRAY(SELECT name FROM active_session_skills(p_organization_id, p_session_id));
  END IF;
  IF cardinality(v_names) = 0 THEN
    RETURN QUERY
      SELECT f.* FROM session_files f
      WHERE f.session_id = p_session_id AND f.path > p_after AND f.path < p_before
        AND (p_is_directory IS NULL OR f.is_directory = p_is_directory)
        AND (p_start IS NULL OR position('/' IN substr(f.path, p_start)) = 0)
      ORDER BY f.path LIMIT p_limit;
    RETURN;
  END IF;
  v_wanted := ARRAY(
    SELECT name FROM unnest(v_names) AS name
    WHERE p_after < '/skills/' || name || '0' COLLATE "C" AND p_before > '/skills/' || name COLLATE "C"
  );
  -- The children of /skills are in none of the skills.
  IF p_limit IS NOT NULL AND (p_start IS NULL OR p_start > length('/skills/') + 1) THEN
    -- Files below the skills' directories are in the order of the skills' names with a slash, so no more skills are read
    -- than fill the page. The directory /skills/a itself comes before /skills/a-b, its files after it.
    FOR v_skill IN
      SELECT s.id, s.name FROM active_session_skills(p_organization_id, p_session_id) s
      WHERE s.name = ANY (v_wanted) ORDER BY s.name || '/' COLLATE "C"
    LOOP
      v_first := v_first || v_skill.name;
      SELECT v_count + count(*) INTO v_count
      FROM skill_files f CROSS JOIN LATERAL (SELECT '/skills/' || v_skill.name || f.path AS path) AS at
      WHERE f.skill_id = v_skill.id AND f.path <> ''
        AND at.path > p_after COLLATE "C" AND at.path < p_before COLLATE "C"
        AND (p_is_directory IS NULL OR f.is_directory = p_is_directory)
        AND (p_start IS NULL OR position('/' IN substr(at.path, p_start)) = 0);
      EXIT WHEN v_count >= p_limit;
    END LOOP;
    v_wanted := ARRAY(
      SELECT name FROM unnest(v_wanted) AS name
      WHERE name = ANY (v_first) OR EXISTS (SELECT FROM unnest(v_first) AS one WHERE starts_with(one, name || '-'))
    );
  END IF;
  -- Each part has its own limit, so that no more of the session's files are read than are listed.
  RETURN QUERY
    SELECT * FROM (
      (SELECT f.* FROM session_files f
      WHERE f.session_id = p_session_id AND f.path > p_after AND f.path < p_before
        AND (p_is_directory IS NULL OR f.is_directory = p_is_directory)
        AND (p_start IS NULL OR position('/' IN substr(f.path, p_start)) = 0)
        AND NOT is_hidden_by_skills(f.path, f.is_directory, v_names)
      ORDER BY f.path LIMIT p_limit)
      UNION ALL
      (SELECT f.* FROM session_skill_files(p_organization_id, p_session_id, v_wanted) f
      WHERE f.path > p_after AND f.path < p_before
        AND (p_is_directory IS NULL OR f.is_directory = p_is_directory)
        AND (p_start IS NULL OR position('/' IN substr(f.path, p_start)) = 0)
      ORDER BY f.path LIMIT p_limit)
    ) AS f ORDER BY f.path LIMIT p_limit;
END $$;
