-- Puts the next turn of a session in line for a place (see admit_turns) when one with a place has ended, so that the order
-- of messages holds for it, too. A trigger function. Its caller holds the session's lock.

CREATE OR REPLACE FUNCTION line_up_next_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE turns SET admission = 'waits' WHERE id = next_queued_turn(NEW.session_id) AND admission IS NULL;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER turns_next_in_line AFTER UPDATE OF finished_at ON turns
FOR EACH ROW WHEN (OLD.admission IS NOT NULL AND OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL)
EXECUTE FUNCTION line_up_next_turn();
