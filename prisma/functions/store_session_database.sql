-- Stores a script's changes to a database of a session, all of them or none. Nothing else writes
-- session_database_pages, apart from deletions.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--   p_turn_id, p_step, p_fence       the attempt of a tool call that writes (see turn_steps); null for other writers
--   p_id, p_version                  the database, and the state on which the script was run
--   p_name                           the name of a database to create; null for an existing one
--   p_max_count                      limit on the session's databases
--   p_page_count                     the number of pages that the database has now
--   p_numbers, p_bytes               the changed pages: their numbers, from 1, and 4,096 bytes of each one after the
--                                    other
--   p_effect                         the call's answer, which a repeated call gets again
--
-- Returns {outcome, …}. `outcome` is
--   stored    the database has the version p_version + 1 or, when there are no pages, still p_version
--   conflict  the database has another version; nothing was stored
--   gone      there is no such database any more
--   exists, too_many  as in create_session_database
--   otherwise as in claim_session_write
--
-- Waits at most a second for a lock, then fails with lock_not_available (55P03).

CREATE OR REPLACE FUNCTION store_session_database(
  p_organization_id uuid, p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint,
  p_id uuid, p_version integer, p_name text, p_max_count integer,
  p_page_count integer, p_numbers integer[], p_bytes bytea, p_effect jsonb
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  c_page CONSTANT integer := 4096;
  v_answer jsonb;
  v_database session_databases;
BEGIN
  v_answer := claim_session_write(p_organization_id, p_session_id, p_turn_id, p_step, p_fence);
  IF v_answer IS NOT NULL THEN
    RETURN v_answer;
  END IF;
  IF p_name IS NOT NULL THEN
    v_answer := create_session_database(p_organization_id, p_session_id, p_id, p_name, p_max_count);
    IF v_answer ->> 'outcome' <> 'created' THEN
      RETURN v_answer;
    END IF;
  END IF;
  SELECT * INTO v_database FROM session_databases WHERE id = p_id AND session_id = p_session_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'gone');
  END IF;
  IF is_call_completed(p_turn_id, p_step) THEN
    IF p_name IS NOT NULL THEN
      DELETE FROM session_databases WHERE id = p_id;
    END IF;
    RETURN jsonb_build_object('outcome', 'fenced');
  END IF;
  IF v_database.version <> p_version THEN
    RETURN jsonb_build_object('outcome', 'conflict');
  END IF;

  IF cardinality(p_numbers) > 0 THEN
    INSERT INTO session_database_pages AS p (session_id, database_id, number, version, bytes)
    SELECT p_session_id, p_id, n.number, p_version + 1, substring(p_bytes FROM (n.place - 1)::integer * c_page + 1 FOR c_page)
    FROM unnest(p_numbers) WITH ORDINALITY AS n (number, place)
    ON CONFLICT (session_id, database_id, number) DO UPDATE SET version = excluded.version, bytes = excluded.bytes;
    DELETE FROM session_database_pages
    WHERE session_id = p_session_id AND database_id = p_id AND number > p_page_count;
    UPDATE session_databases SET version = version + 1, page_count = p_page_count, updated_at = clock_timestamp()
    WHERE id = p_id;
  END IF;
  IF p_turn_id IS NOT NULL THEN
    UPDATE turn_steps SET effect = p_effect WHERE turn_id = p_turn_id AND step = p_step;
  END IF;
  RETURN jsonb_build_object('outcome', 'stored');
END $$;
