-- CreateEnum
CREATE TYPE "llm_provider_type" AS ENUM ('openai', 'openai_completions', 'anthropic', 'gemini', 'llmsim');

-- CreateEnum
CREATE TYPE "llm_status" AS ENUM ('active', 'disabled');

-- CreateEnum
CREATE TYPE "llm_model_source" AS ENUM ('manual', 'discovered', 'predefined');

-- AlterTable
ALTER TABLE "organizations" ADD COLUMN "default_model_id" UUID;

-- The cost of what was used before is unknown, so the column is null in rows that have used something.
ALTER TABLE "agents" ADD COLUMN "cost_usd" DECIMAL;
ALTER TABLE "agents" ALTER COLUMN "cost_usd" SET DEFAULT 0;
UPDATE "agents" SET "cost_usd" = 0 WHERE "input_tokens" = 0 AND "output_tokens" = 0;
ALTER TABLE "sessions" ADD COLUMN "cost_usd" DECIMAL;
ALTER TABLE "sessions" ALTER COLUMN "cost_usd" SET DEFAULT 0;
UPDATE "sessions" SET "cost_usd" = 0 WHERE "input_tokens" = 0 AND "output_tokens" = 0;
ALTER TABLE "turns" ADD COLUMN "cost_usd" DECIMAL;
ALTER TABLE "turns" ALTER COLUMN "cost_usd" SET DEFAULT 0;
UPDATE "turns" SET "cost_usd" = 0 WHERE "input_tokens" = 0 AND "output_tokens" = 0;

-- CreateTable
CREATE TABLE "llm_providers" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "name" TEXT,
    "type" "llm_provider_type",
    "base_url" TEXT,
    "api_key" BYTEA,
    "status" "llm_status" NOT NULL DEFAULT 'active',
    "last_synced_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "llm_providers_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "llm_models" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "provider_id" UUID NOT NULL,
    "name" TEXT,
    "display_name" TEXT,
    "capabilities" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "is_favorite" BOOLEAN NOT NULL DEFAULT false,
    "status" "llm_status" NOT NULL DEFAULT 'active',
    "source" "llm_model_source" NOT NULL,
    "is_stale" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "llm_models_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateIndex
CREATE INDEX "llm_models_organization_id_provider_id_id_idx" ON "llm_models"("organization_id", "provider_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "llm_models_organization_id_provider_id_name_key" ON "llm_models"("organization_id", "provider_id", "name");

-- AddForeignKey
ALTER TABLE "llm_providers" ADD CONSTRAINT "llm_providers_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "llm_models" ADD CONSTRAINT "llm_models_organization_id_provider_id_fkey" FOREIGN KEY ("organization_id", "provider_id") REFERENCES "llm_providers"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
