-- CreateEnum
CREATE TYPE "snapshot_kind" AS ENUM ('file', 'value', 'database', 'page');

-- AlterTable
ALTER TABLE "session_file_totals" ADD COLUMN     "space_id" UUID;

-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "fork" JSONB,
ADD COLUMN     "forked_from_id" UUID,
ADD COLUMN     "snapshots_since" BIGINT,
ADD COLUMN     "tree_id" UUID;

-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "is_copy" BOOLEAN NOT NULL DEFAULT false;

-- CreateTable
CREATE TABLE "session_settings" (
    "session_id" UUID NOT NULL,
    "until" INTEGER NOT NULL,
    "agent_version" INTEGER,
    "model_id" UUID,
    "capabilities" JSON NOT NULL,
    "tools" JSON NOT NULL,

    CONSTRAINT "session_settings_pkey" PRIMARY KEY ("session_id","until")
);

-- CreateTable
CREATE TABLE "session_snapshots" (
    "session_id" UUID NOT NULL,
    "kind" "snapshot_kind" NOT NULL,
    "name" TEXT COLLATE "C" NOT NULL,
    "stamp" BIGINT NOT NULL,
    "before" JSONB,
    "bytes" BYTEA,

    CONSTRAINT "session_snapshots_pkey" PRIMARY KEY ("session_id","kind","name","stamp")
);

-- CreateTable
CREATE TABLE "file_spaces_due" (
    "space_id" UUID NOT NULL,
    "noted_at" TIMESTAMPTZ(6) NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT "file_spaces_due_pkey" PRIMARY KEY ("space_id")
);

-- AddForeignKey
ALTER TABLE "session_settings" ADD CONSTRAINT "session_settings_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Copied from prisma/functions/change_session_files.sql, which has the manual.
CREATE OR REPLACE FUNCTION change_session_files(
  p_organization_id uuid, p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint,
  p_changes jsonb, p_contents bytea, p_max_count integer, p_max_bytes bigint
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  -- Bytes of a chunk, small enough for the memory of readers (see image chunks). Readers accept any size.
  c_chunk CONSTANT integer := 49152;
  v_refusal jsonb;
  v_totals session_file_totals;
  -- Where the chunks are. In a shared space, contents that are given up stay until a sweep finds that nothing has them.
  v_space uuid;
  v_is_shared boolean;
  v_given_up boolean := false;
  v_count integer := 0;
  v_bytes bigint := 0;
  -- Names of the session's skills; null until a change concerns /skills.
  v_skills text[];
  v_deleted integer := 0;
  v_now timestamptz(3) := clock_timestamp();
  v_change jsonb;
  v_path text;
  v_from text;
  v_file session_files;
  -- The file that is moved or copied; null for other changes.
  v_source session_files;
  v_exists boolean;
  v_length integer;
  v_content_id uuid;
  v_gone record;
  v_problem text;
BEGIN
  v_refusal := claim_session_write(p_organization_id, p_session_id, p_turn_id, p_step, p_fence);
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  SELECT * INTO v_totals FROM session_file_totals WHERE session_id = p_session_id FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO session_file_totals (session_id, space_id)
    SELECT id, CASE WHEN snapshots_since IS NOT NULL THEN id END FROM sessions WHERE id = p_session_id
    ON CONFLICT DO NOTHING;
    SELECT * INTO v_totals FROM session_file_totals WHERE session_id = p_session_id FOR UPDATE;
  END IF;
  v_space := coalesce(v_totals.space_id, p_session_id);
  v_is_shared := v_totals.space_id IS NOT NULL;
  IF is_call_completed(p_turn_id, p_step) THEN
    RETURN jsonb_build_object('outcome', 'fenced');
  END IF;

  FOR v_change IN SELECT value FROM jsonb_array_elements(p_changes) LOOP
    v_path := coalesce(v_change ->> 'path', v_change ->> 'to');
    v_from := v_change ->> 'from';
    v_source := NULL;
    IF v_skills IS NULL AND (starts_with(v_path, '/skills') OR starts_with(v_from, '/skills')) THEN
      v_skills := ARRAY(SELECT name FROM active_session_skills(p_organization_id, p_session_id));
    END IF;
    IF starts_with(v_path, '/skills') THEN
      SELECT * INTO v_file FROM visible_session_files(p_organization_id, p_session_id, ARRAY[v_path]);
    ELSE
      SELECT * INTO v_file FROM session_files WHERE session_id = p_session_id AND path = v_path;
    END IF;
    v_exists := FOUND;

    IF v_change ? 'was' AND (v_change ->> 'was')::uuid IS DISTINCT FROM v_file.content_id THEN
      PERFORM refuse_file_change('changed', v_path);
    END IF;
    CONTINUE WHEN v_change ->> 'do' = 'check';

    -- Nothing of a skill is changed, nor is /skills deleted or moved while it has skills in it.
    IF is_hidden_by_skills(v_path, true, v_skills)
      OR v_change ->> 'do' = 'delete' AND v_path = '/skills' AND cardinality(v_skills) > 0
    THEN
      PERFORM refuse_file_change('of_skill', v_path);
    ELSIF v_change ->> 'do' = 'move'
      AND (is_hidden_by_skills(v_from, true, v_skills) OR v_from = '/skills' AND cardinality(v_skills) > 0)
    THEN
      PERFORM refuse_file_change('of_skill', v_from);
    END IF;

    IF v_change ->> 'do' = 'delete' THEN
      IF v_exists AND v_file.is_directory AND NOT coalesce((v_change ->> 'is_recursive')::boolean, false)
        AND EXISTS (
          SELECT FROM session_files WHERE session_id = p_session_id AND path > v_path || '/' AND path < v_path || '0'
        )
      THEN
        PERFORM refuse_file_change('not_empty', v_path);
      END IF;
      WITH gone AS (
        DELETE FROM session_files WHERE session_id = p_session_id
          AND (path = v_path OR path > v_path || '/' AND path < v_path || '0')
        RETURNING content_id, size_bytes
      ), chunks AS (
        -- As an array, because without statistics a join of the two becomes a nested loop.
        DELETE FROM session_file_chunks
        WHERE NOT v_is_shared AND session_id = v_space AND content_id = ANY (ARRAY(SELECT content_id FROM gone))
      )
      SELECT count(*)::integer AS count, coalesce(sum(size_bytes), 0)::bigint AS bytes INTO v_gone FROM gone;
      v_count := v_count - v_gone.count;
      v_bytes := v_bytes - v_gone.bytes;
      v_deleted := v_deleted + v_gone.count;
      v_given_up := v_is_shared;
      CONTINUE;
    END IF;

    IF v_change ->> 'do' = 'make_directory' AND v_exists THEN
      IF NOT v_file.is_directory THEN
        PERFORM refuse_file_change('exists', v_path);
      END IF;
      CONTINUE;
    END IF;

    IF v_change ->> 'do' IN ('write', 'set_readonly') THEN
      CASE
        WHEN v_exists AND v_change ->> 'if' = 'absent' THEN PERFORM refuse_file_change('exists', v_path);
        WHEN v_exists AND v_file.is_directory THEN PERFORM refuse_file_change('is_directory', v_path);
        WHEN NOT v_exists AND (v_change ->> 'do' = 'set_readonly' OR v_change ->> 'if' = 'present') THEN
          PERFORM refuse_file_change('missing', v_path);
        WHEN v_file.is_readonly AND v_change ->> 'do' = 'write' THEN
          PERFORM refuse_file_change('is_readonly', v_path);
        ELSE
      END CASE;
    ELSIF v_from IS NOT NULL THEN
      IF starts_with(v_from, '/skills') THEN
        SELECT * INTO v_source FROM visible_session_files(p_organization_id, p_session_id, ARRAY[v_from]);
      ELSE
        SELECT * INTO v_source FROM session_files WHERE session_id = p_session_id AND path = v_from;
      END IF;
      CASE
        WHEN NOT FOUND THEN PERFORM refuse_file_change('missing', v_from);
        WHEN v_change ->> 'do' = 'copy' AND v_source.is_directory THEN
          PERFORM refuse_file_change('is_directory', v_from);
        WHEN v_path = v_from OR starts_with(v_path, v_from || '/') THEN
          PERFORM refuse_file_change('into_itself', v_path);
        WHEN v_exists THEN PERFORM refuse_file_change('exists', v_path);
        ELSE
      END CASE;
    END IF;

    IF NOT v_exists THEN
      v_count := v_count + make_parent_directories(p_session_id, v_path, v_now);
    END IF;

    IF v_change ->> 'do' = 'move' THEN
      UPDATE session_files SET path = v_path || substr(path, length(v_from) + 1)
      WHERE session_id = p_session_id AND (path = v_from OR path > v_from || '/' AND path < v_from || '0');
      IF EXISTS (
        SELECT FROM session_files
        WHERE session_id = p_session_id AND path > v_path || '/' AND path < v_path || '0'
          AND (octet_length(path) > 1024 OR length(path) - length(replace(path, '/', '')) > 64)
      ) THEN
        PERFORM refuse_file_change('too_long', v_path);
      END IF;
      SELECT * INTO v_file FROM session_files WHERE session_id = p_session_id AND path = v_path;
      CONTINUE;
    END IF;

    v_content_id := v_file.content_id;
    v_length := v_file.size_bytes;
    IF v_change ->> 'do' IN ('write', 'copy') THEN
      v_content_id := gen_random_uuid();
      v_length := coalesce((v_change ->> 'length')::integer, v_source.size_bytes);
      v_bytes := v_bytes + v_length - coalesce(v_file.size_bytes, 0);
    END IF;
    IF v_change ->> 'do' = 'write' THEN
      IF v_is_shared THEN
        v_given_up := v_given_up OR v_exists;
      ELSE
        DELETE FROM session_file_chunks WHERE session_id = v_space AND content_id = v_file.content_id;
      END IF;
      INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
      SELECT v_space, v_content_id, n,
        substring(p_contents FROM (v_change ->> 'start')::integer + n + 1 FOR least(c_chunk, v_length - n))
      FROM generate_series(0, v_length - 1, c_chunk) AS n;
    ELSIF v_change ->> 'do' = 'copy' THEN
      INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
      SELECT session_id, v_content_id, start, bytes FROM session_file_chunks
      WHERE session_id = v_space AND content_id = v_source.content_id;
      IF is_hidden_by_skills(v_from, true, v_skills) THEN
        PERFORM FROM skill_files WHERE id = v_source.content_id FOR KEY SHARE;
        IF NOT FOUND THEN
          PERFORM refuse_file_change('changed', v_from);
        END IF;
        INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
        SELECT v_space, v_content_id, n, substring(f.bytes FROM n + 1 FOR c_chunk)
        FROM skill_files f CROSS JOIN generate_series(0, v_length - 1, c_chunk) AS n
        WHERE f.id = v_source.content_id;
      END IF;
    END IF;
    v_count := v_count + CASE WHEN v_exists THEN 0 ELSE 1 END;
    INSERT INTO session_files AS f
      (id, session_id, path, is_directory, is_readonly, is_base64, size_bytes, content_id, seen_content_id, created_at, updated_at)
    VALUES (
      coalesce((v_change ->> 'id')::uuid, gen_random_uuid()), p_session_id, v_path,
      v_change ->> 'do' = 'make_directory',
      coalesce((v_change ->> 'is_readonly')::boolean, v_file.is_readonly, false),
      coalesce((v_change ->> 'is_base64')::boolean, v_file.is_base64, v_source.is_base64, false),
      coalesce(v_length, 0), v_content_id,
      CASE WHEN v_change ? 'is_seen' THEN v_content_id ELSE v_file.seen_content_id END, v_now, v_now
    )
    ON CONFLICT (session_id, path) DO UPDATE SET
      is_readonly = excluded.is_readonly, is_base64 = excluded.is_base64, size_bytes = excluded.size_bytes,
      content_id = excluded.content_id, seen_content_id = excluded.seen_content_id, updated_at = excluded.updated_at
    RETURNING f.* INTO v_file;
  END LOOP;

  IF v_count > 0 AND v_totals.count + v_count > p_max_count THEN
    PERFORM refuse_file_change('too_many', v_path);
  END IF;
  IF v_bytes > 0 AND v_totals.bytes + v_bytes > p_max_bytes THEN
    PERFORM refuse_file_change('too_large', v_path);
  END IF;
  IF v_count <> 0 OR v_bytes <> 0 THEN
    UPDATE session_file_totals SET count = count + v_count, bytes = bytes + v_bytes WHERE session_id = p_session_id;
  END IF;
  IF v_given_up THEN
    INSERT INTO file_spaces_due (space_id) VALUES (v_space)
    ON CONFLICT (space_id) DO UPDATE SET noted_at = clock_timestamp();
  END IF;
  IF p_turn_id IS NOT NULL THEN
    UPDATE turn_steps SET effect = 'true' WHERE turn_id = p_turn_id AND step = p_step;
  END IF;
  RETURN jsonb_build_object('outcome', 'changed', 'file', to_jsonb(v_file), 'deleted', v_deleted);
EXCEPTION WHEN SQLSTATE 'FILES' THEN
  GET STACKED DIAGNOSTICS v_problem = MESSAGE_TEXT, v_path = PG_EXCEPTION_DETAIL;
  RETURN jsonb_build_object('outcome', 'refused', 'problem', v_problem, 'path', v_path);
END $$;

-- Copied from prisma/functions/claim_session_write.sql, which has the manual.
CREATE OR REPLACE FUNCTION claim_session_write(
  p_organization_id uuid, p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_status turn_status;
  v_step record;
  v_snapshots_since bigint;
BEGIN
  PERFORM set_config('lock_timeout', '1s', true);
  IF p_turn_id IS NOT NULL THEN
    SELECT status INTO v_status FROM turns WHERE id = p_turn_id AND session_id = p_session_id FOR SHARE;
    IF NOT FOUND THEN
      RETURN jsonb_build_object('outcome', 'session_gone');
    END IF;
    IF v_status IN ('completed', 'failed', 'cancelled') THEN
      RETURN jsonb_build_object('outcome', 'turn_ended');
    END IF;
    SELECT fence, effect INTO v_step FROM turn_steps
    WHERE turn_id = p_turn_id AND step = p_step FOR NO KEY UPDATE;
    IF NOT FOUND OR v_step.fence <> p_fence THEN
      RETURN jsonb_build_object('outcome', 'fenced');
    END IF;
    IF v_step.effect IS NOT NULL THEN
      RETURN jsonb_build_object('outcome', 'repeated', 'effect', v_step.effect);
    END IF;
  END IF;
  SELECT snapshots_since INTO v_snapshots_since
  FROM sessions WHERE id = p_session_id AND organization_id = p_organization_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  IF v_snapshots_since IS NOT NULL THEN
    -- Nothing before the first message is ever asked for.
    PERFORM set_config('agent_sessions.stamp', coalesce(
      (SELECT 2 * min(input_sequence)::bigint FROM turns WHERE session_id = p_session_id AND finished_at IS NULL),
      (SELECT 2 * max(input_sequence)::bigint + 1 FROM turns WHERE session_id = p_session_id)
    )::text, true);
  END IF;
  RETURN NULL;
END $$;

-- Copied from prisma/functions/index_message.sql, which has the manual.
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

-- Copied from prisma/functions/keep_session_settings.sql, which has the manual.
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

-- Copied from prisma/functions/keep_snapshot.sql, which has the manual.
CREATE OR REPLACE FUNCTION keep_snapshot() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_kind snapshot_kind := CASE TG_TABLE_NAME
    WHEN 'session_files' THEN 'file' WHEN 'session_values' THEN 'value' WHEN 'session_databases' THEN 'database' ELSE 'page'
  END;
  v_old jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) - 'bytes' END;
  v_new jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) - 'bytes' END;
  v_bytes bytea;
  v_old_name text;
  v_new_name text;
BEGIN
  IF v_kind = 'page' AND TG_OP <> 'INSERT' THEN
    v_bytes := OLD.bytes;
  END IF;
  v_old_name := CASE v_kind
    WHEN 'file' THEN v_old ->> 'path' WHEN 'value' THEN v_old ->> 'key' WHEN 'database' THEN v_old ->> 'name'
    ELSE (v_old ->> 'database_id') || '/' || (v_old ->> 'number')
  END;
  v_new_name := CASE v_kind
    WHEN 'file' THEN v_new ->> 'path' WHEN 'value' THEN v_new ->> 'key' WHEN 'database' THEN v_new ->> 'name'
    ELSE (v_new ->> 'database_id') || '/' || (v_new ->> 'number')
  END;
  INSERT INTO session_snapshots (session_id, kind, name, stamp, before, bytes)
  SELECT (coalesce(v_old, v_new) ->> 'session_id')::uuid, v_kind, was.name, current_setting('agent_sessions.stamp')::bigint,
    was.before, was.bytes
  FROM (VALUES (v_old_name, v_old, v_bytes), (CASE WHEN v_new_name IS DISTINCT FROM v_old_name THEN v_new_name END, NULL, NULL))
    AS was (name, before, bytes)
  WHERE was.name IS NOT NULL
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER session_files_kept AFTER INSERT OR UPDATE OR DELETE ON session_files
FOR EACH ROW WHEN (current_setting('agent_sessions.stamp', true) <> '') EXECUTE FUNCTION keep_snapshot();
CREATE OR REPLACE TRIGGER session_values_kept AFTER INSERT OR UPDATE OR DELETE ON session_values
FOR EACH ROW WHEN (current_setting('agent_sessions.stamp', true) <> '') EXECUTE FUNCTION keep_snapshot();
CREATE OR REPLACE TRIGGER session_databases_kept AFTER INSERT OR UPDATE OR DELETE ON session_databases
FOR EACH ROW WHEN (current_setting('agent_sessions.stamp', true) <> '') EXECUTE FUNCTION keep_snapshot();
CREATE OR REPLACE TRIGGER session_database_pages_kept AFTER INSERT OR UPDATE OR DELETE ON session_database_pages
FOR EACH ROW WHEN (current_setting('agent_sessions.stamp', true) <> '') EXECUTE FUNCTION keep_snapshot();

-- Copied from prisma/functions/note_left_file_space.sql, which has the manual.
CREATE OR REPLACE FUNCTION note_left_file_space() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO file_spaces_due (space_id) VALUES (OLD.space_id)
  ON CONFLICT (space_id) DO UPDATE SET noted_at = clock_timestamp();
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER session_file_totals_left AFTER DELETE ON session_file_totals
FOR EACH ROW WHEN (OLD.space_id IS NOT NULL) EXECUTE FUNCTION note_left_file_space();
