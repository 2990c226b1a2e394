-- Each statement by itself: the tables may be large, and turns go on while their indexes are built.

DROP INDEX CONCURRENTLY IF EXISTS "sessions_organization_id_last_turn_status_created_at_id_idx";

CREATE INDEX CONCURRENTLY "sessions_organization_id_last_turn_status_created_at_id_idx" ON "sessions"("organization_id", "last_turn_status", "created_at" DESC, "id" DESC);

-- Tags of one organization: its id is one of them.
DROP INDEX CONCURRENTLY IF EXISTS "sessions_tags";

CREATE INDEX CONCURRENTLY "sessions_tags" ON sessions USING gin ((tags || organization_id::text)) WITH (fastupdate = off) WHERE tags <> '{}';

DROP INDEX CONCURRENTLY IF EXISTS "turns_organization_id_status_created_at_id_idx";

CREATE INDEX CONCURRENTLY "turns_organization_id_status_created_at_id_idx" ON "turns"("organization_id", "status", "created_at" DESC, "id" DESC);

DROP INDEX CONCURRENTLY IF EXISTS "turns_organization_id_agent_id_status_created_at_id_idx";

CREATE INDEX CONCURRENTLY "turns_organization_id_agent_id_status_created_at_id_idx" ON "turns"("organization_id", "agent_id", "status", "created_at" DESC, "id" DESC);

DROP INDEX CONCURRENTLY IF EXISTS "turns_organization_id_user_id_status_created_at_id_idx";

CREATE INDEX CONCURRENTLY "turns_organization_id_user_id_status_created_at_id_idx" ON "turns"("organization_id", "user_id", "status", "created_at" DESC, "id" DESC);

DROP INDEX CONCURRENTLY IF EXISTS "turns_failed";

CREATE INDEX CONCURRENTLY "turns_failed" ON turns (organization_id, error_code, created_at DESC, id DESC) WHERE error_code IS NOT NULL;

-- Turns that have begun and not ended, the longest running first.
DROP INDEX CONCURRENTLY IF EXISTS "turns_running";

CREATE INDEX CONCURRENTLY "turns_running" ON turns (organization_id, started_at, id) WHERE finished_at IS NULL AND started_at IS NOT NULL;

-- The index by organization and status serves its queries.
DROP INDEX CONCURRENTLY IF EXISTS "turns_organization_id_idx";

-- Titles and messages of earlier releases, a few sessions at a time: none waits for long, and a repetition goes on.
DO $$
DECLARE
  v_after uuid := '00000000-0000-0000-0000-000000000000';
  v_ids uuid[];
BEGIN
  LOOP
    v_ids := ARRAY(SELECT id FROM sessions WHERE id > v_after ORDER BY id LIMIT 100 FOR KEY SHARE);
    EXIT WHEN v_ids = '{}';
    INSERT INTO session_texts (session_id, sequence, words)
    SELECT s.id, t.sequence, search_words(s.organization_id, t.text, t.is_input)
    FROM sessions s CROSS JOIN LATERAL (
      SELECT 0 AS sequence, s.title AS text, false AS is_input WHERE s.title IS NOT NULL
      UNION ALL
      SELECT e.sequence, message_text(e.data), e.type = 'input.message' FROM events e
      WHERE e.session_id = s.id AND e.type IN ('input.message', 'output.message.completed')
    ) AS t
    WHERE s.id = ANY (v_ids)
    ON CONFLICT DO NOTHING;
    v_after := v_ids[cardinality(v_ids)];
    COMMIT;
  END LOOP;
END $$;

-- Agents of earlier turns, a few at a time as well.
DO $$
DECLARE
  v_after uuid := '00000000-0000-0000-0000-000000000000';
  v_ids uuid[];
BEGIN
  LOOP
    v_ids := ARRAY(SELECT id FROM turns WHERE id > v_after ORDER BY id LIMIT 1000);
    EXIT WHEN v_ids = '{}';
    UPDATE turns SET agent_id = s.agent_id FROM sessions s
    WHERE turns.id = ANY (v_ids) AND s.id = turns.session_id AND turns.agent_id IS NULL AND s.agent_id IS NOT NULL;
    v_after := v_ids[cardinality(v_ids)];
    COMMIT;
  END LOOP;
END $$;
