-- Lists the skills that a session uses: the active ones that it or its agent names as capability skill:<uuid>. The agent's
-- version is the running turn's, or the next one's.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to

CREATE OR REPLACE FUNCTION active_session_skills(p_organization_id uuid, p_session_id uuid) RETURNS TABLE (
  id uuid, name text, description text, created_at timestamptz, updated_at timestamptz
) LANGUAGE sql STABLE AS $$
  WITH refs AS MATERIALIZED (
    SELECT substr(c ->> 'ref', 7)::uuid AS skill_id
    FROM sessions s LEFT JOIN agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
    LEFT JOIN agent_versions v ON v.organization_id = a.organization_id AND v.agent_id = a.id AND s.draft_prompt IS NULL AND v.version = coalesce(
      (SELECT agent_version FROM turns WHERE session_id = s.id AND status IN ('active', 'waiting') LIMIT 1), s.agent_version, a.version
    )
    CROSS JOIN LATERAL (VALUES (v.capabilities), (s.capabilities)) AS named (capabilities)
    CROSS JOIN LATERAL json_array_elements(named.capabilities) AS c
    WHERE s.id = p_session_id AND s.organization_id = p_organization_id
      AND c ->> 'ref' ~ '^skill:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  )
  SELECT k.id, k.name, k.description, k.created_at, k.updated_at FROM skills k
  WHERE k.organization_id = p_organization_id AND k.status = 'active' AND k.id IN (SELECT skill_id FROM refs)
$$;
