-- Lists the files of a session's skills as files of the session: /skills/<name> and everything below it, and the
-- directory /skills unless the session has one. Returns nothing without skills.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--   p_names                          the skills whose files are wanted; /skills is always included
--
-- content_id is the skill file's id, which changes with the content; its bytes are in skill_files. The rows have the
-- type session_files for the order of its paths.

CREATE OR REPLACE FUNCTION session_skill_files(p_organization_id uuid, p_session_id uuid, p_names text[])
RETURNS SETOF session_files LANGUAGE sql STABLE AS $$
  WITH used AS MATERIALIZED (
    SELECT id, name, created_at, updated_at FROM active_session_skills(p_organization_id, p_session_id)
  )
  SELECT f.id, p_session_id, '/skills/' || used.name || f.path, f.is_directory, true, f.is_base64, f.size_bytes,
    CASE WHEN NOT f.is_directory THEN f.id END, NULL::uuid, used.created_at, f.created_at
  FROM used JOIN skill_files f ON f.skill_id = used.id
  WHERE used.name = ANY (p_names)
  UNION ALL
  -- One of the skills' ids stands for the directory. It is not read-only: the session may have others in it.
  (SELECT used.id, p_session_id, '/skills', true, false, false, 0, NULL, NULL, used.created_at, used.updated_at
  FROM used
  WHERE NOT EXISTS (SELECT FROM session_files WHERE session_id = p_session_id AND path = '/skills' AND is_directory)
  ORDER BY used.id LIMIT 1)
$$;
