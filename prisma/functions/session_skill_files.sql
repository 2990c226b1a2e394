-- Lists the files of the skills that a session uses, as files of the session: /skills/<name> and what is below it, and the
-- directory /skills itself. Without skills there are none.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--
-- A session uses the active skills that it or its agent names as capability skill:<uuid>. The rows have the columns of
-- session_files that describe a file. content_id is the skill file's id, which changes with the content; its bytes are in
-- skill_files.

CREATE OR REPLACE FUNCTION session_skill_files(p_organization_id uuid, p_session_id uuid) RETURNS TABLE (
  id uuid, session_id uuid, path text, is_directory boolean, is_readonly boolean, is_base64 boolean, size_bytes integer,
  content_id uuid, created_at timestamptz, updated_at timestamptz
) LANGUAGE sql STABLE AS $$
  WITH refs AS MATERIALIZED (
    SELECT substr(c ->> 'ref', 7)::uuid AS skill_id
    FROM sessions s LEFT JOIN agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
    CROSS JOIN jsonb_array_elements(coalesce(a.capabilities, '[]')::jsonb || s.capabilities::jsonb) AS c
    WHERE s.id = p_session_id AND s.organization_id = p_organization_id
      AND c ->> 'ref' ~ '^skill:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  ), used AS MATERIALIZED (
    SELECT k.id, k.name, k.created_at, k.updated_at FROM skills k
    WHERE k.organization_id = p_organization_id AND k.status = 'active' AND k.id IN (SELECT skill_id FROM refs)
  )
  SELECT f.id, p_session_id, '/skills/' || used.name || f.path, f.is_directory, true, f.is_base64, f.size_bytes,
    CASE WHEN NOT f.is_directory THEN f.id END, used.created_at, f.created_at
  FROM used JOIN skill_files f ON f.skill_id = used.id
  UNION ALL
  -- One of the skills' ids stands for the directory, which has no row of its own.
  (SELECT used.id, p_session_id, '/skills', true, true, false, 0, NULL, used.created_at, used.updated_at
  FROM used ORDER BY used.id LIMIT 1)
$$;
