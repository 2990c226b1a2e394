-- Lets turns of an organization run that wait for a place, in the order of their messages, as many as its caps allow.
-- One transaction at a time does this for an organization, so that never more turns run than a cap says.
--
-- Parameters
--   p_organization_id  the organization
--   p_cap              number of its turns that run at once; null: any. Its agents have their own in limits.max_running_turns
--   p_turn_id          a turn that is about to make a model call and asks for a place, unless it has one; or null
--
-- Returns the turns that may run now and could not before, and p_turn_id if it may run.
--
-- turns.admission is 'waits' or 'granted'; null for turns without a cap, which hold no place. Only the first unfinished
-- turn of a session gets a place: another one could not use it. A turn that waits for its client holds none
-- (release_admission).

CREATE OR REPLACE FUNCTION admit_turns(p_organization_id uuid, p_cap integer, p_turn_id uuid DEFAULT NULL)
RETURNS TABLE (turn_id uuid) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('admit_turns/' || p_organization_id, 0));

  UPDATE turns SET admission = 'waits'
  WHERE id = p_turn_id AND organization_id = p_organization_id AND admission IS NULL
    AND (status = 'active' OR (status = 'queued' AND id = next_queued_turn(session_id)));

  -- A statement of its own: it sees what the previous holders of the lock have granted.
  RETURN QUERY WITH running AS (
    SELECT agent_id, count(*) AS turns FROM turns
    WHERE organization_id = p_organization_id AND admission = 'granted' GROUP BY agent_id
  ), line AS (
    SELECT t.id, t.created_at, (a.limits ->> 'max_running_turns')::integer AS cap,
      coalesce(r.turns, 0) + row_number() OVER (PARTITION BY t.agent_id ORDER BY t.created_at, t.id) AS place
    FROM turns t
    LEFT JOIN agents a ON a.organization_id = t.organization_id AND a.id = t.agent_id
    LEFT JOIN running r ON r.agent_id = t.agent_id
    WHERE t.organization_id = p_organization_id AND t.admission = 'waits' AND t.status IN ('queued', 'active')
  ), next AS (
    SELECT id FROM line WHERE cap IS NULL OR place <= cap ORDER BY created_at, id
    LIMIT CASE WHEN p_cap IS NOT NULL THEN greatest(0, p_cap - (SELECT coalesce(sum(turns), 0) FROM running)) END
  )
  UPDATE turns t SET admission = 'granted' FROM next
  WHERE t.id = next.id AND t.admission = 'waits' AND t.status IN ('queued', 'active')
  RETURNING t.id;

  RETURN QUERY SELECT id FROM turns WHERE id = p_turn_id AND admission = 'granted';
END $$;
