-- Lists the skills that a session uses: the active ones that it or its agent names as capability skill:<uuid>.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to

CREATE OR REPLACE FUNCTION active_session_skills(p_organization_id uuid, p_session_id uuid) RETURNS TABLE (
  id uuid, name text, description text, created_at timestamptz, updated_at timestamptz
) LANGUAGE sql STABLE AS $$
  WITH refs AS MATERIALIZED (
    SELECT substr(c ->> 'ref', 7)::uuid AS skill_id
    FROM sessions s LEFT JOIN agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
    CROSS JOIN LATERAL (VALUES (a.capabilities), (s.capabilities)) AS named (capabilities)
    CROSS JOIN LATERAL json_array_elements(named.capabilities) AS c
    WHERE s.id = p_session_id AND s.organization_id = p_organization_id
      AND c ->> 'ref' ~ '^skill:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  )
  SELECT k.id, k.name, k.description, k.created_at, k.updated_at FROM skills k
  WHERE k.organization_id = p_organization_id AND k.status = 'active' AND k.id IN (SELECT skill_id FROM refs)
$$;
