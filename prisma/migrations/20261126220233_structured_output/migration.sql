-- AlterTable
ALTER TABLE "agent_versions" ADD COLUMN     "output_schema" JSON;

-- AlterTable
ALTER TABLE "agents" ADD COLUMN     "output_schema" JSON;

-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "output" JSONB,
ADD COLUMN     "output_schema" JSON;

-- Copied from prisma/functions/count_agent_version.sql, which has the manual.
CREATE OR REPLACE FUNCTION count_agent_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.name, NEW.description, NEW.system_prompt, NEW.default_model_id, NEW.tags, NEW.capabilities::text, NEW.tools::text, NEW.limits,
    NEW.output_schema::text)
    IS DISTINCT FROM
    (OLD.name, OLD.description, OLD.system_prompt, OLD.default_model_id, OLD.tags, OLD.capabilities::text, OLD.tools::text, OLD.limits,
    OLD.output_schema::text)
  THEN
    NEW.version := OLD.version + 1;
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER agents_counted
BEFORE UPDATE OF name, description, system_prompt, default_model_id, tags, capabilities, tools, limits, output_schema ON agents
FOR EACH ROW EXECUTE FUNCTION count_agent_version();

-- Copied from prisma/functions/keep_agent_version.sql, which has the manual.
CREATE OR REPLACE FUNCTION keep_agent_version() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_by jsonb := nullif(current_setting('agent_sessions.version', true), '')::jsonb;
BEGIN
  INSERT INTO agent_versions (
    organization_id, agent_id, version, name, description, system_prompt, default_model_id, tags, capabilities, tools, limits,
    output_schema, note, user_id, api_key_id, created_at
  )
  VALUES (
    NEW.organization_id, NEW.id, NEW.version, NEW.name, NEW.description, NEW.system_prompt, NEW.default_model_id, NEW.tags,
    NEW.capabilities, NEW.tools, NEW.limits, NEW.output_schema, v_by ->> 'note', (v_by ->> 'user_id')::uuid, (v_by ->> 'api_key_id')::uuid, now()
  );
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER agents_kept AFTER INSERT ON agents FOR EACH ROW EXECUTE FUNCTION keep_agent_version();

CREATE OR REPLACE TRIGGER agents_changed
AFTER UPDATE OF name, description, system_prompt, default_model_id, tags, capabilities, tools, limits, output_schema ON agents
FOR EACH ROW WHEN (NEW.version <> OLD.version) EXECUTE FUNCTION keep_agent_version();
