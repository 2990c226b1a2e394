-- Ends a run of change_session_files, which undoes its changes and returns the problem.

CREATE OR REPLACE FUNCTION refuse_file_change(p_problem text, p_path text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION SQLSTATE 'FILES' USING MESSAGE = p_problem, DETAIL = p_path;
END $$;
