-- Keeps each version of an agent. A trigger function. A change of an agent says by whom it is, and why, in its transaction's
-- setting agent_sessions.version: {user_id, api_key_id, note}.

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
