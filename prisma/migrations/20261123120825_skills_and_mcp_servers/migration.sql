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
CREATE UNIQUE INDEX "mcp_servers_organization_id_slug_key" ON "mcp_servers"("organization_id", "slug");

-- AddForeignKey
ALTER TABLE "skills" ADD CONSTRAINT "skills_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "skill_files" ADD CONSTRAINT "skill_files_skill_id_fkey" FOREIGN KEY ("skill_id") REFERENCES "skills"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mcp_servers" ADD CONSTRAINT "mcp_servers_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Copied from prisma/functions/session_skill_files.sql, which has the manual.
CREATE OR REPLACE FUNCTION session_skill_files(p_organization_id uuid, p_session_id uuid) RETURNS TABLE (
  id uuid, session_id uuid, path text, is_directory boolean, is_readonly boolean, is_base64 boolean, size_bytes integer,
  content_id uuid, created_at timestamptz, updated_at timestamptz
) LANGUAGE sql STABLE AS $$
  WITH refs AS MATERIALIZED (
    SELECT substr(c ->> 'ref', 7)::uuid AS skill_id
    FROM sessions s LEFT JOIN agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
    CROSS JOIN jsonb_array_elements(coalesce(a.capabilities, '[]')::jsonb || s.capabilities::jsonb) AS c
    WHERE s.id = p_session_id AND s.organization_id = p_organization_id
      AND c ->> 'ref' ~ '^skill:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  ), used AS MATERIALIZED (
    SELECT k.id, k.name, k.created_at, k.updated_at FROM skills k
    WHERE k.organization_id = p_organization_id AND k.status = 'active' AND k.id IN (SELECT skill_id FROM refs)
  )
  SELECT f.id, p_session_id, '/skills/' || used.name || f.path, f.is_directory, true, f.is_base64, f.size_bytes,
    CASE WHEN NOT f.is_directory THEN f.id END, used.created_at, f.created_at
  FROM used JOIN skill_files f ON f.skill_id = used.id
  UNION ALL
  -- One of the skills' ids stands for the directory, which has no row of its own.
  (SELECT used.id, p_session_id, '/skills', true, true, false, 0, NULL, used.created_at, used.updated_at
  FROM used ORDER BY used.id LIMIT 1)
$$;
