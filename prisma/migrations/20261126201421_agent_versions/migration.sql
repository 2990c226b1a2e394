-- AlterTable
ALTER TABLE "agents" ADD COLUMN     "version" INTEGER NOT NULL DEFAULT 1;

-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "agent_version" INTEGER;

-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "agent_version" INTEGER;

-- CreateTable
CREATE TABLE "agent_versions" (
    "organization_id" UUID NOT NULL,
    "agent_id" UUID NOT NULL,
    "version" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "system_prompt" TEXT NOT NULL,
    "default_model_id" UUID,
    "tags" TEXT[],
    "capabilities" JSON NOT NULL,
    "tools" JSON NOT NULL,
    "limits" JSONB NOT NULL,
    "note" TEXT,
    "user_id" UUID,
    "api_key_id" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "agent_versions_pkey" PRIMARY KEY ("organization_id","agent_id","version")
);

-- AddForeignKey
ALTER TABLE "agent_versions" ADD CONSTRAINT "agent_versions_organization_id_agent_id_fkey" FOREIGN KEY ("organization_id", "agent_id") REFERENCES "agents"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Copied from prisma/functions/active_session_skills.sql, which has the manual.
CREATE OR REPLACE FUNCTION active_session_skills(p_organization_id uuid, p_session_id uuid) RETURNS TABLE (
  id uuid, name text, description text, created_at timestamptz, updated_at timestamptz
) LANGUAGE sql STABLE AS $$
  WITH refs AS MATERIALIZED (
    SELECT substr(c ->> 'ref', 7)::uuid AS skill_id
    FROM sessions s LEFT JOIN agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
    LEFT JOIN agent_versions v ON v.organization_id = a.organization_id AND v.agent_id = a.id AND v.version = coalesce(
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

-- Copied from prisma/functions/count_agent_version.sql, which has the manual.
CREATE OR REPLACE FUNCTION count_agent_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.name, NEW.description, NEW.system_prompt, NEW.default_model_id, NEW.tags, NEW.capabilities::text, NEW.tools::text, NEW.limits)
    IS DISTINCT FROM
    (OLD.name, OLD.description, OLD.system_prompt, OLD.default_model_id, OLD.tags, OLD.capabilities::text, OLD.tools::text, OLD.limits)
  THEN
    NEW.version := OLD.version + 1;
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER agents_counted
BEFORE UPDATE OF name, description, system_prompt, default_model_id, tags, capabilities, tools, limits ON agents
FOR EACH ROW EXECUTE FUNCTION count_agent_version();

-- Copied from prisma/functions/keep_agent_version.sql, which has the manual.
CREATE OR REPLACE FUNCTION keep_agent_version() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_by jsonb := nullif(current_setting('agent_sessions.version', true), '')::jsonb;
BEGIN
  INSERT INTO agent_versions (
    organization_id, agent_id, version, name, description, system_prompt, default_model_id, tags, capabilities, tools, limits,
    note, user_id, api_key_id, created_at
  )
  VALUES (
    NEW.organization_id, NEW.id, NEW.version, NEW.name, NEW.description, NEW.system_prompt, NEW.default_model_id, NEW.tags,
    NEW.capabilities, NEW.tools, NEW.limits, v_by ->> 'note', (v_by ->> 'user_id')::uuid, (v_by ->> 'api_key_id')::uuid, now()
  );
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER agents_kept AFTER INSERT ON agents FOR EACH ROW EXECUTE FUNCTION keep_agent_version();

CREATE OR REPLACE TRIGGER agents_changed
AFTER UPDATE OF name, description, system_prompt, default_model_id, tags, capabilities, tools, limits ON agents
FOR EACH ROW WHEN (NEW.version <> OLD.version) EXECUTE FUNCTION keep_agent_version();

-- The versions that agents have now. The triggers hold agents' writes until the end.
INSERT INTO agent_versions (
  organization_id, agent_id, version, name, description, system_prompt, default_model_id, tags, capabilities, tools, limits, created_at
)
SELECT organization_id, id, version, name, description, system_prompt, default_model_id, tags, capabilities, tools, limits, updated_at
FROM agents;
