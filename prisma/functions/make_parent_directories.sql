-- Creates the missing directories above a path, and returns their number. Refuses a path with a file among its parents.
-- Called by change_session_files only.

CREATE OR REPLACE FUNCTION make_parent_directories(p_session_id uuid, p_path text, p_now timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_parent text := regexp_replace(p_path, '/[^/]*$', '');
  v_made integer := 0;
  v_is_directory boolean;
BEGIN
  WHILE v_parent <> '' LOOP
    SELECT is_directory INTO v_is_directory FROM session_files WHERE session_id = p_session_id AND path = v_parent;
    IF FOUND THEN
      IF NOT v_is_directory THEN
        PERFORM refuse_file_change('not_directory', v_parent);
      END IF;
      EXIT;
    END IF;
    INSERT INTO session_files (id, session_id, path, is_directory, created_at, updated_at)
    VALUES (gen_random_uuid(), p_session_id, v_parent, true, p_now, p_now);
    v_made := v_made + 1;
    v_parent := regexp_replace(v_parent, '/[^/]*$', '');
  END LOOP;
  RETURN v_made;
END $$;
