-- Notes each deleted session in deleted_sessions, so that what it owned is removed after it. A trigger, called once for
-- each statement that deletes sessions, in that statement's transaction: however a row goes, also with its organization
-- or by hand, there is a note.
--
-- domain/session-deletion writes the note itself, with the turns whose workflows have to be told, before it deletes the
-- row; that note stays as it is.

CREATE OR REPLACE FUNCTION note_deleted_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO deleted_sessions (id, turn_ids) SELECT id, '{}' FROM changed ON CONFLICT (id) DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER sessions_deleted_note AFTER DELETE ON sessions REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_sessions();
