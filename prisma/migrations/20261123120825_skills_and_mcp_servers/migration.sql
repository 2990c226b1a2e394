-- CreateEnum
CREATE TYPE "skill_source" AS ENUM ('markdown', 'archive');

-- CreateEnum
CREATE TYPE "skill_status" AS ENUM ('active', 'disabled');

-- CreateEnum
CREATE TYPE "mcp_server_status" AS ENUM ('active', 'disabled');

-- CreateEnum
CREATE TYPE "mcp_tools_policy" AS ENUM ('accept', 'ask');

-- CreateTable
CREATE TABLE "skills" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "license" TEXT,
    "compatibility" TEXT,
    "metadata" JSONB NOT NULL DEFAULT '{}',
    "allowed_tools" TEXT,
    "version" TEXT NOT NULL,
    "source" "skill_source" NOT NULL,
    "status" "skill_status" NOT NULL DEFAULT 'active',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "skills_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "skill_files" (
    "id" UUID NOT NULL,
    "skill_id" UUID NOT NULL,
    "path" TEXT NOT NULL,
    "is_directory" BOOLEAN NOT NULL,
    "is_base64" BOOLEAN NOT NULL DEFAULT false,
    "size_bytes" INTEGER NOT NULL DEFAULT 0,
    "bytes" BYTEA NOT NULL DEFAULT '\x',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "skill_files_pkey" PRIMARY KEY ("skill_id","path")
);

-- CreateTable
CREATE TABLE "mcp_servers" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "description" TEXT,
    "url" TEXT NOT NULL,
    "status" "mcp_server_status" NOT NULL DEFAULT 'active',
    "tools_policy" "mcp_tools_policy" NOT NULL DEFAULT 'accept',
    "has_api_key" BOOLEAN NOT NULL DEFAULT false,
    "header_names" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "credentials" BYTEA,
    "revision" INTEGER NOT NULL DEFAULT 0,
    "tools" JSONB,
    "tools_bytes" INTEGER NOT NULL DEFAULT 0,
    "accepted_tools" JSONB,
    "protocol" JSONB,
    "tools_discovered_at" TIMESTAMPTZ(3),
    "tools_expire_at" TIMESTAMPTZ(3),
    "tools_changed_at" TIMESTAMPTZ(3),
    "tools_error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "mcp_servers_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateIndex
CREATE INDEX "skills_organization_id_id_idx" ON "skills"("organization_id", "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "skills_organization_id_name_key" ON "skills"("organization_id", "name");

-- CreateIndex
CREATE UNIQUE INDEX "skill_files_id_key" ON "skill_files"("id");

-- CreateIndex
CREATE UNIQUE INDEX "mcp_servers_organization_id_slug_key" ON "mcp_servers"("organization_id", "slug");

-- AddForeignKey
ALTER TABLE "skills" ADD CONSTRAINT "skills_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "skill_files" ADD CONSTRAINT "skill_files_skill_id_fkey" FOREIGN KEY ("skill_id") REFERENCES "skills"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mcp_servers" ADD CONSTRAINT "mcp_servers_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Copied from prisma/functions/active_session_skills.sql, which has the manual.
CREATE OR REPLACE FUNCTION active_session_skills(p_organization_id uuid, p_session_id uuid) RETURNS TABLE (
  id uuid, name text, description text, created_at timestamptz, updated_at timestamptz
) LANGUAGE sql STABLE AS $$
  WITH refs AS MATERIALIZED (
    SELECT substr(c ->> 'ref', 7)::uuid AS skill_id
    FROM sessions s LEFT JOIN agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
    CROSS JOIN LATERAL (VALUES (a.capabilities), (s.capabilities)) AS named (capabilities)
    CROSS JOIN LATERAL json_array_elements(named.capabilities) AS c
    WHERE s.id = p_session_id AND s.organization_id = p_organization_id
      AND c ->> 'ref' ~ '^skill:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  )
  SELECT k.id, k.name, k.description, k.created_at, k.updated_at FROM skills k
  WHERE k.organization_id = p_organization_id AND k.status = 'active' AND k.id IN (SELECT skill_id FROM refs)
$$;

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
      DELETE FROM session_file_chunks WHERE session_id = p_session_id AND content_id = v_file.content_id;
      INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
      SELECT p_session_id, v_content_id, n,
        substring(p_contents FROM (v_change ->> 'start')::integer + n + 1 FOR least(c_chunk, v_length - n))
      FROM generate_series(0, v_length - 1, c_chunk) AS n;
    ELSIF v_change ->> 'do' = 'copy' THEN
      INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
      SELECT session_id, v_content_id, start, bytes FROM session_file_chunks
      WHERE session_id = p_session_id AND content_id = v_source.content_id;
      IF is_hidden_by_skills(v_from, true, v_skills) THEN
        PERFORM FROM skill_files WHERE id = v_source.content_id FOR KEY SHARE;
        IF NOT FOUND THEN
          PERFORM refuse_file_change('changed', v_from);
        END IF;
        INSERT INTO session_file_chunks (session_id, content_id, start, bytes)
        SELECT p_session_id, v_content_id, n, substring(f.bytes FROM n + 1 FOR c_chunk)
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
  IF p_turn_id IS NOT NULL THEN
    UPDATE turn_steps SET effect = 'true' WHERE turn_id = p_turn_id AND step = p_step;
  END IF;
  RETURN jsonb_build_object('outcome', 'changed', 'file', to_jsonb(v_file), 'deleted', v_deleted);
EXCEPTION WHEN SQLSTATE 'FILES' THEN
  GET STACKED DIAGNOSTICS v_problem = MESSAGE_TEXT, v_path = PG_EXCEPTION_DETAIL;
  RETURN jsonb_build_object('outcome', 'refused', 'problem', v_problem, 'path', v_path);
END $$;

-- Copied from prisma/functions/is_hidden_by_skills.sql, which has the manual.
CREATE OR REPLACE FUNCTION is_hidden_by_skills(p_path text, p_is_directory boolean, p_names text[])
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN p_path = '/skills' THEN NOT p_is_directory AND cardinality(p_names) > 0
    ELSE starts_with(p_path, '/skills/') AND split_part(p_path, '/', 3) = ANY (p_names)
  END
$$;

-- Copied from prisma/functions/list_session_files.sql, which has the manual.
CREATE OR REPLACE FUNCTION list_session_files(
  p_organization_id uuid, p_session_id uuid, p_after text, p_before text, p_is_directory boolean, p_start integer,
  p_limit integer
) RETURNS SETOF session_files LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_names text[] := '{}';
  -- Names of the skills that have files between the paths.
  v_wanted text[];
  v_skill record;
  v_first text[] := '{}';
  v_count bigint := 0;
BEGIN
  IF NOT EXISTS (SELECT FROM sessions WHERE id = p_session_id AND organization_id = p_organization_id) THEN
    RETURN;
  END IF;
  IF p_after < '/skills0' COLLATE "C" AND p_before > '/skills' COLLATE "C" THEN
    v_names := ARRAY(SELECT name FROM active_session_skills(p_organization_id, p_session_id));
  END IF;
  IF cardinality(v_names) = 0 THEN
    RETURN QUERY
      SELECT f.* FROM session_files f
      WHERE f.session_id = p_session_id AND f.path > p_after AND f.path < p_before
        AND (p_is_directory IS NULL OR f.is_directory = p_is_directory)
        AND (p_start IS NULL OR position('/' IN substr(f.path, p_start)) = 0)
      ORDER BY f.path LIMIT p_limit;
    RETURN;
  END IF;
  v_wanted := ARRAY(
    SELECT name FROM unnest(v_names) AS name
    WHERE p_after < '/skills/' || name || '0' COLLATE "C" AND p_before > '/skills/' || name COLLATE "C"
  );
  -- The children of /skills are in none of the skills.
  IF p_limit IS NOT NULL AND (p_start IS NULL OR p_start > length('/skills/') + 1) THEN
    -- Files below the skills' directories are in the order of the skills' names with a slash, so no more skills are read
    -- than fill the page. The directory /skills/a itself comes before /skills/a-b, its files after it.
    FOR v_skill IN
      SELECT s.id, s.name FROM active_session_skills(p_organization_id, p_session_id) s
      WHERE s.name = ANY (v_wanted) ORDER BY s.name || '/' COLLATE "C"
    LOOP
      v_first := v_first || v_skill.name;
      SELECT v_count + count(*) INTO v_count
      FROM skill_files f CROSS JOIN LATERAL (SELECT '/skills/' || v_skill.name || f.path AS path) AS at
      WHERE f.skill_id = v_skill.id AND f.path <> ''
        AND at.path > p_after COLLATE "C" AND at.path < p_before COLLATE "C"
        AND (p_is_directory IS NULL OR f.is_directory = p_is_directory)
        AND (p_start IS NULL OR position('/' IN substr(at.path, p_start)) = 0);
      EXIT WHEN v_count >= p_limit;
    END LOOP;
    v_wanted := ARRAY(
      SELECT name FROM unnest(v_wanted) AS name
      WHERE name = ANY (v_first) OR EXISTS (SELECT FROM unnest(v_first) AS one WHERE starts_with(one, name || '-'))
    );
  END IF;
  -- Each part has its own limit, so that no more of the session's files are read than are listed.
  RETURN QUERY
    SELECT * FROM (
      (SELECT f.* FROM session_files f
      WHERE f.session_id = p_session_id AND f.path > p_after AND f.path < p_before
        AND (p_is_directory IS NULL OR f.is_directory = p_is_directory)
        AND (p_start IS NULL OR position('/' IN substr(f.path, p_start)) = 0)
        AND NOT is_hidden_by_skills(f.path, f.is_directory, v_names)
      ORDER BY f.path LIMIT p_limit)
      UNION ALL
      (SELECT f.* FROM session_skill_files(p_organization_id, p_session_id, v_wanted) f
      WHERE f.path > p_after AND f.path < p_before
        AND (p_is_directory IS NULL OR f.is_directory = p_is_directory)
        AND (p_start IS NULL OR position('/' IN substr(f.path, p_start)) = 0)
      ORDER BY f.path LIMIT p_limit)
    ) AS f ORDER BY f.path LIMIT p_limit;
END $$;

-- Copied from prisma/functions/session_skill_files.sql, which has the manual.
CREATE OR REPLACE FUNCTION session_skill_files(p_organization_id uuid, p_session_id uuid, p_names text[])
RETURNS SETOF session_files LANGUAGE sql STABLE AS $$
  WITH used AS MATERIALIZED (
    SELECT id, name, created_at, updated_at FROM active_session_skills(p_organization_id, p_session_id)
  )
  SELECT f.id, p_session_id, '/skills/' || used.name || f.path, f.is_directory, true, f.is_base64, f.size_bytes,
    CASE WHEN NOT f.is_directory THEN f.id END, NULL::uuid, used.created_at, f.created_at
  FROM used JOIN skill_files f ON f.skill_id = used.id
  WHERE used.name = ANY (p_names)
  UNION ALL
  -- One of the skills' ids stands for the directory. It is not read-only: the session may have others in it.
  (SELECT used.id, p_session_id, '/skills', true, false, false, 0, NULL, NULL, used.created_at, used.updated_at
  FROM used
  WHERE NOT EXISTS (SELECT FROM session_files WHERE session_id = p_session_id AND path = '/skills' AND is_directory)
  ORDER BY used.id LIMIT 1)
$$;

-- Copied from prisma/functions/visible_session_files.sql, which has the manual.
CREATE OR REPLACE FUNCTION visible_session_files(p_organization_id uuid, p_session_id uuid, p_paths text[])
RETURNS SETOF session_files LANGUAGE plpgsql STABLE ROWS 10 AS $$
DECLARE
  v_names text[] := '{}';
BEGIN
  IF NOT EXISTS (SELECT FROM sessions WHERE id = p_session_id AND organization_id = p_organization_id) THEN
    RETURN;
  END IF;
  -- Most paths have nothing to do with skills.
  IF EXISTS (SELECT FROM unnest(p_paths) AS path WHERE starts_with(path, '/skills')) THEN
    v_names := ARRAY(SELECT name FROM active_session_skills(p_organization_id, p_session_id));
  END IF;
  RETURN QUERY
    SELECT f.* FROM session_files f
    WHERE f.session_id = p_session_id AND f.path = ANY (p_paths)
      AND NOT is_hidden_by_skills(f.path, f.is_directory, v_names);
  IF cardinality(v_names) > 0 THEN
    v_names := ARRAY(SELECT DISTINCT split_part(path, '/', 3) FROM unnest(p_paths) AS path);
    RETURN QUERY
      SELECT f.* FROM session_skill_files(p_organization_id, p_session_id, v_names) f WHERE f.path = ANY (p_paths);
  END IF;
END $$;
