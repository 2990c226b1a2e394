-- Counts the versions of an agent: each change of what a version has makes a new one. A trigger function. The triggers name
-- columns, so that the sums of usage, which add_usage adds to an agent, cost nothing more.

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
