-- Notes that a session has left its shared space of files, whose contents may be unused now. A trigger function.

CREATE OR REPLACE FUNCTION note_left_file_space() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO file_spaces_due (space_id) VALUES (OLD.space_id)
  ON CONFLICT (space_id) DO UPDATE SET noted_at = clock_timestamp();
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER session_file_totals_left AFTER DELETE ON session_file_totals
FOR EACH ROW WHEN (OLD.space_id IS NOT NULL) EXECUTE FUNCTION note_left_file_space();
