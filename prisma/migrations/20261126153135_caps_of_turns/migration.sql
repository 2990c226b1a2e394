-- CreateEnum
CREATE TYPE "turn_admission" AS ENUM ('waits', 'granted');

-- AlterTable
ALTER TABLE "agents" ADD COLUMN     "limits" JSONB NOT NULL DEFAULT '{}';

-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "admission" "turn_admission";

-- Turns that have or want a place among the turns that run at once.

-- Copied from prisma/functions/admit_turns.sql, which has the manual.
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

-- Copied from prisma/functions/line_up_next_turn.sql, which has the manual.
CREATE OR REPLACE FUNCTION line_up_next_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE turns SET admission = 'waits' WHERE id = next_queued_turn(NEW.session_id) AND admission IS NULL;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER turns_next_in_line AFTER UPDATE OF finished_at ON turns
FOR EACH ROW WHEN (OLD.admission IS NOT NULL AND OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL)
EXECUTE FUNCTION line_up_next_turn();

-- Copied from prisma/functions/release_admission.sql, which has the manual.
CREATE OR REPLACE FUNCTION release_admission() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.admission := CASE WHEN NEW.finished_at IS NULL THEN 'waits' END::turn_admission;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER turns_admission_released BEFORE UPDATE OF status ON turns
FOR EACH ROW WHEN (OLD.admission IS NOT NULL AND (NEW.finished_at IS NOT NULL OR NEW.status = 'waiting'))
EXECUTE FUNCTION release_admission();
