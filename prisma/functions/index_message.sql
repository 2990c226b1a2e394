-- Makes the text of a user's message or of an answer searchable. A trigger function, in the transaction of its event. A
-- fork sets agent_sessions.copies, because it copies the words, too.

CREATE OR REPLACE FUNCTION index_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO session_texts (session_id, sequence, words)
  SELECT s.id, NEW.sequence, search_words(s.organization_id, message_text(NEW.data), NEW.type = 'input.message')
  FROM sessions s WHERE s.id = NEW.session_id
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER messages_indexed AFTER INSERT ON events
FOR EACH ROW WHEN (
  NEW.type IN ('input.message', 'output.message.completed') AND coalesce(current_setting('agent_sessions.copies', true), '') = ''
) EXECUTE FUNCTION index_message();
