-- Adds each deleted session to deleted_sessions, so that its data is removed afterwards. A trigger function, called
-- once for each statement that deletes sessions, in that statement's transaction. It covers every way to delete a row,
-- such as by hand or with its organization.
--
-- domain/upkeep/session-deletion adds the row itself before it deletes the session, with the turns whose workflows must
-- be notified; that row is left unchanged.
--
-- Schedules that target a session are deleted with it, and their content is erased at once. So is the content of
-- schedules deleted earlier, which was kept for an unfinished execution.

CREATE OR REPLACE FUNCTION note_deleted_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO deleted_sessions (id, turn_ids) SELECT id, '{}' FROM changed ON CONFLICT (id) DO NOTHING;
  UPDATE schedules SET
    deleted_at = coalesce(deleted_at, now()), updated_at = now(), enabled = false, name = id::text, description = NULL,
    target_input = '{}', target_headers = NULL, session_id = NULL, tool_name = NULL,
    revision = revision + 1, clock_due_at = now()
  WHERE session_id IN (SELECT id FROM changed);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER sessions_deleted_note AFTER DELETE ON sessions REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_sessions();
