-- AlterTable
ALTER TABLE "turn_steps" ADD COLUMN     "effect" JSONB;

-- CreateTable
CREATE TABLE "session_files" (
    "id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "path" TEXT COLLATE "C" NOT NULL,
    "is_directory" BOOLEAN NOT NULL,
    "is_readonly" BOOLEAN NOT NULL DEFAULT false,
    "is_base64" BOOLEAN NOT NULL DEFAULT false,
    "size_bytes" INTEGER NOT NULL DEFAULT 0,
    "content_id" UUID,
    "seen_content_id" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_files_pkey" PRIMARY KEY ("session_id","path")
);

-- CreateTable
CREATE TABLE "session_file_chunks" (
    "session_id" UUID NOT NULL,
    "content_id" UUID NOT NULL,
    "start" INTEGER NOT NULL,
    "bytes" BYTEA NOT NULL,

    CONSTRAINT "session_file_chunks_pkey" PRIMARY KEY ("session_id","content_id","start")
);

-- CreateTable
CREATE TABLE "session_file_totals" (
    "session_id" UUID NOT NULL,
    "count" INTEGER NOT NULL DEFAULT 0,
    "bytes" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "session_file_totals_pkey" PRIMARY KEY ("session_id")
);

-- AddForeignKey
ALTER TABLE "session_file_totals" ADD CONSTRAINT "session_file_totals_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Reading is more frequent than writing, and decompressing takes longer than reading.
ALTER TABLE "session_file_chunks" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;

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
  v_count integer := 0;
  v_bytes bigint := 0;
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
    INSERT INTO session_file_totals (session_id) VALUES (p_session_id) ON CONFLICT DO NOTHING;
    SELECT * INTO v_totals FROM session_file_totals WHERE session_id = p_session_id FOR UPDATE;
  END IF;
  IF is_call_completed(p_turn_id, p_step) THEN
    RETURN jsonb_build_object('outcome', 'fenced');
  END IF;

  FOR v_change IN SELECT value FROM jsonb_array_elements(p_changes) LOOP
    v_path := coalesce(v_change ->> 'path', v_change ->> 'to');
    v_from := v_change ->> 'from';
    v_source := NULL;
    SELECT * INTO v_file FROM session_files WHERE session_id = p_session_id AND path = v_path;
    v_exists := FOUND;

    IF v_change ? 'was' AND (v_change ->> 'was')::uuid IS DISTINCT FROM v_file.content_id THEN
      PERFORM refuse_file_change('changed', v_path);
    END IF;
    CONTINUE WHEN v_change ->> 'do' = 'check';

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
        WHERE session_id = p_session_id AND content_id = ANY (ARRAY(SELECT content_id FROM gone))
      )
      SELECT count(*)::integer AS count, coalesce(sum(size_bytes), 0)::bigint AS bytes INTO v_gone FROM gone;
      v_count := v_count - v_gone.count;
      v_bytes := v_bytes - v_gone.bytes;
      v_deleted := v_deleted + v_gone.count;
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
      SELECT * INTO v_source FROM session_files WHERE session_id = p_session_id AND path = v_from;
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
      DELETE FROM session_file_chunks WHERE session_id = p_session_id AND content_id = v_file.content_id;
      INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
      SELECT p_session_id, v_content_id, n,
        substring(p_contents FROM (v_change ->> 'start')::integer + n + 1 FOR least(c_chunk, v_length - n))
      FROM generate_series(0, v_length - 1, c_chunk) AS n;
    ELSIF v_change ->> 'do' = 'copy' THEN
      INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
      SELECT session_id, v_content_id, start, bytes FROM session_file_chunks
      WHERE session_id = p_session_id AND content_id = v_source.content_id;
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
  PERFORM FROM sessions WHERE id = p_session_id AND organization_id = p_organization_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'session_gone');
  END IF;
  RETURN NULL;
END $$;

-- Copied from prisma/functions/is_call_completed.sql, which has the manual.
CREATE OR REPLACE FUNCTION is_call_completed(p_turn_id uuid, p_step text) RETURNS boolean LANGUAGE sql AS $$
  SELECT p_turn_id IS NOT NULL AND EXISTS (
    SELECT FROM events WHERE turn_id = p_turn_id AND type = 'tool.completed' AND step = p_step
  )
$$;

-- Copied from prisma/functions/make_parent_directories.sql, which has the manual.
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

-- Copied from prisma/functions/refuse_file_change.sql, which has the manual.
CREATE OR REPLACE FUNCTION refuse_file_change(p_problem text, p_path text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION SQLSTATE 'FILES' USING MESSAGE = p_problem, DETAIL = p_path;
END $$;
