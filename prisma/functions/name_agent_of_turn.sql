-- Sets the agent of a turn that a process of an earlier release inserts, which does not know the column. A trigger
-- function.

CREATE OR REPLACE FUNCTION name_agent_of_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT agent_id INTO NEW.agent_id FROM sessions WHERE id = NEW.session_id;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER turns_agent BEFORE INSERT ON turns
FOR EACH ROW WHEN (NEW.agent_id IS NULL) EXECUTE FUNCTION name_agent_of_turn();
