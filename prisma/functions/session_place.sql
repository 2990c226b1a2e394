-- Finds a place in a list of sessions, newest first, without reading the sessions before it.
--
-- The list belongs to an organization, or to one of its agents (all zeros: to the whole organization). Sessions in
-- p_left_out, which the list shows elsewhere, are not counted. After p_skip others, the list continues with the
-- sessions created before `before`, less the first `skip` of them. Returns no row when the list has no more than p_skip
-- sessions.
--
-- session_counts is searched first for the day, then for the five minutes in it. So `skip` is at most the number of
-- sessions created in five minutes, and the rest costs the same however long the list is.

CREATE OR REPLACE FUNCTION session_place(p_organization_id uuid, p_agent_id uuid, p_left_out uuid[], p_skip bigint)
RETURNS TABLE (before timestamptz, skip bigint) LANGUAGE sql STABLE AS $$
  WITH left_out AS (
    SELECT created_at FROM sessions WHERE id = ANY (p_left_out)
  ), days AS (
    SELECT start, sum(count) AS count, sum(sum(count)) OVER (ORDER BY start DESC) AS upto FROM (
      SELECT start, count FROM session_counts
      WHERE organization_id = p_organization_id AND agent_id = p_agent_id AND seconds = 86400
      UNION ALL
      SELECT date_bin('1 day', created_at, 'epoch'), -1 FROM left_out
    ) AS counted GROUP BY start
  ), day AS (
    SELECT start, upto - count AS skipped FROM days WHERE upto > p_skip ORDER BY start DESC LIMIT 1
  ), parts AS (
    SELECT start, sum(count) AS count, sum(sum(count)) OVER (ORDER BY start DESC) + (SELECT skipped FROM day) AS upto FROM (
      SELECT start, count FROM session_counts
      WHERE organization_id = p_organization_id AND agent_id = p_agent_id AND seconds = 300
        AND start >= (SELECT start FROM day) AND start < (SELECT start FROM day) + interval '24 hours'
      UNION ALL
      SELECT date_bin('5 minutes', created_at, 'epoch'), -1 FROM left_out
      WHERE created_at >= (SELECT start FROM day) AND created_at < (SELECT start FROM day) + interval '24 hours'
    ) AS counted GROUP BY start
  )
  SELECT start + interval '5 minutes', (p_skip - (upto - count))::bigint
  FROM parts WHERE upto > p_skip ORDER BY start DESC LIMIT 1
$$;
