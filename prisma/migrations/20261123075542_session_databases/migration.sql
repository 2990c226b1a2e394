-- Copied from prisma/functions/create_session_database.sql, which has the manual.
CREATE OR REPLACE FUNCTION create_session_database(
  p_organization_id uuid, p_session_id uuid, p_id uuid, p_name text, p_max_count integer
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_refusal jsonb := claim_session_write(p_organization_id, p_session_id, NULL, NULL, NULL);
  v_now timestamptz(3) := clock_timestamp();
BEGIN
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  -- So that the databases are counted by one transaction at a time.
  PERFORM pg_advisory_xact_lock(hashtextextended('session_databases ' || p_session_id, 0));
  IF EXISTS (SELECT FROM session_databases WHERE id = p_id OR session_id = p_session_id AND name = p_name) THEN
    RETURN jsonb_build_object('outcome', 'exists');
  END IF;
  IF (SELECT count(*) FROM session_databases WHERE session_id = p_session_id) >= p_max_count THEN
    RETURN jsonb_build_object('outcome', 'too_many');
  END IF;
  INSERT INTO session_databases (id, session_id, name, created_at, updated_at)
  VALUES (p_id, p_session_id, p_name, v_now, v_now);
  RETURN jsonb_build_object('outcome', 'created');
END $$;

-- Copied from prisma/functions/delete_session_database.sql, which has the manual.
CREATE OR REPLACE FUNCTION delete_session_database(
  p_organization_id uuid, p_session_id uuid, p_name text
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_refusal jsonb := claim_session_write(p_organization_id, p_session_id, NULL, NULL, NULL);
  v_id uuid;
BEGIN
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  -- First of all the lock: a statement that waited for it would not see the pages that others have stored meanwhile.
  SELECT id INTO v_id FROM session_databases WHERE session_id = p_session_id AND name = p_name FOR UPDATE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'missing');
  END IF;
  DELETE FROM session_database_pages WHERE session_id = p_session_id AND database_id = v_id;
  DELETE FROM session_databases WHERE id = v_id;
  RETURN jsonb_build_object('outcome', 'deleted', 'id', v_id);
END $$;

-- Copied from prisma/functions/store_session_database.sql, which has the manual.
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
