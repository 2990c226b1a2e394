-- CreateEnum
CREATE TYPE "call_secret_kind" AS ENUM ('arguments', 'result');

-- CreateTable
CREATE TABLE "session_databases" (
    "id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "page_count" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_databases_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_database_pages" (
    "session_id" UUID NOT NULL,
    "database_id" UUID NOT NULL,
    "number" INTEGER NOT NULL,
    "version" INTEGER NOT NULL,
    "bytes" BYTEA NOT NULL,

    CONSTRAINT "session_database_pages_pkey" PRIMARY KEY ("session_id","database_id","number")
);

-- CreateTable
CREATE TABLE "session_values" (
    "session_id" UUID NOT NULL,
    "key" TEXT COLLATE "C" NOT NULL,
    "value" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_values_pkey" PRIMARY KEY ("session_id","key")
);

-- CreateTable
CREATE TABLE "session_secrets" (
    "session_id" UUID NOT NULL,
    "name" TEXT COLLATE "C" NOT NULL,
    "value" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_secrets_pkey" PRIMARY KEY ("session_id","name")
);

-- CreateTable
CREATE TABLE "call_secrets" (
    "session_id" UUID NOT NULL,
    "turn_id" UUID NOT NULL,
    "step" TEXT NOT NULL,
    "kind" "call_secret_kind" NOT NULL,
    "value" BYTEA NOT NULL,

    CONSTRAINT "call_secrets_pkey" PRIMARY KEY ("session_id","turn_id","step","kind")
);

-- CreateIndex
CREATE UNIQUE INDEX "session_databases_session_id_name_key" ON "session_databases"("session_id", "name");

-- AddForeignKey
ALTER TABLE "session_databases" ADD CONSTRAINT "session_databases_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Reading is more frequent than writing, and decompressing takes longer than reading.
ALTER TABLE "session_database_pages" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;

-- For the check of the encryption keys at the start (platform/key-ring.ts).
CREATE INDEX "session_secrets_value_header" ON "session_secrets" (substring("value" FROM 1 FOR 9));
CREATE INDEX "call_secrets_value_header" ON "call_secrets" (substring("value" FROM 1 FOR 9));
