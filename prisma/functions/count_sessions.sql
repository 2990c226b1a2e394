-- Keeps session_counts: how many sessions an organization, and each of its agents, created in each day and in each
-- five minutes (UTC), less the deleted ones. A trigger function, called once for each statement that creates or deletes
-- sessions, in that statement's transaction.
--
-- The agent of all zeros stands for the whole organization; a session without an agent is counted only there.
-- Four shards, by the last byte of the session's id, keep concurrent creations from waiting for one another. Rows are
-- written in a fixed order, so that two statements cannot deadlock. A count that a deletion brings to zero is removed.

CREATE OR REPLACE FUNCTION count_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
  INSERT INTO session_counts AS known (organization_id, agent_id, seconds, start, shard, count)
  SELECT s.organization_id, a.id, u.seconds, date_bin(make_interval(secs => u.seconds), s.created_at, 'epoch'),
    get_byte(uuid_send(s.id), 15) % 4, v_sign * count(*)
  FROM changed s
  CROSS JOIN LATERAL (
    SELECT '00000000-0000-0000-0000-000000000000'::uuid UNION ALL SELECT s.agent_id WHERE s.agent_id IS NOT NULL
  ) AS a (id)
  CROSS JOIN (VALUES (86400), (300)) AS u (seconds)
  GROUP BY 1, 2, 3, 4, 5
  ORDER BY 1, 2, 3, 4, 5
  ON CONFLICT (organization_id, agent_id, seconds, start, shard) DO UPDATE SET count = known.count + excluded.count;
  IF TG_OP = 'DELETE' THEN
    DELETE FROM session_counts c USING changed s
    WHERE c.organization_id = s.organization_id
      AND c.agent_id IN ('00000000-0000-0000-0000-000000000000', s.agent_id)
      AND c.seconds IN (86400, 300) AND c.start = date_bin(make_interval(secs => c.seconds), s.created_at, 'epoch')
      AND c.shard = get_byte(uuid_send(s.id), 15) % 4
      AND c.count = 0;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER sessions_created AFTER INSERT ON sessions REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_sessions();
CREATE OR REPLACE TRIGGER sessions_deleted AFTER DELETE ON sessions REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_sessions();
