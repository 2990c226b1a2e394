-- Keeps the settings that a session had before a change, for forks at an earlier turn. A trigger function. The first change
-- after an event counts, and only the latest 100 are kept.

CREATE OR REPLACE FUNCTION keep_session_settings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO session_settings (session_id, until, agent_version, model_id, capabilities, tools)
  VALUES (OLD.id, OLD.last_sequence, OLD.agent_version, OLD.model_id, OLD.capabilities, OLD.tools)
  ON CONFLICT DO NOTHING;
  DELETE FROM session_settings WHERE session_id = OLD.id AND until <= (
    SELECT until FROM session_settings WHERE session_id = OLD.id ORDER BY until DESC OFFSET 100 LIMIT 1
  );
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER sessions_settings_kept AFTER UPDATE OF agent_version, model_id, capabilities, tools ON sessions
FOR EACH ROW WHEN (OLD.last_sequence > 0) EXECUTE FUNCTION keep_session_settings();
