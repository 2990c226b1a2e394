-- AlterTable
ALTER TABLE "llm_providers" ADD COLUMN     "key_secret_name" TEXT;

-- AlterTable
ALTER TABLE "mcp_servers" ADD COLUMN     "oauth" JSONB;

-- CreateTable
CREATE TABLE "organization_secrets" (
    "organization_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "id" UUID NOT NULL,
    "value" BYTEA NOT NULL,
    "hosts" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "organization_secrets_pkey" PRIMARY KEY ("organization_id","name")
);

-- CreateTable
CREATE TABLE "mcp_grants" (
    "organization_id" UUID NOT NULL,
    "server_id" UUID NOT NULL,
    "holder_id" UUID NOT NULL,
    "user_id" UUID,
    "tokens" BYTEA,
    "scope" TEXT,
    "expires_at" TIMESTAMPTZ(3),
    "revision" INTEGER NOT NULL DEFAULT 0,
    "connected_at" TIMESTAMPTZ(3),
    "refreshing_until" TIMESTAMPTZ(3),
    "wanted_scope" TEXT,
    "pending" BYTEA,
    "state" UUID,
    "pending_user_id" UUID,
    "pending_until" TIMESTAMPTZ(3),

    CONSTRAINT "mcp_grants_pkey" PRIMARY KEY ("organization_id","server_id","holder_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "mcp_grants_state_key" ON "mcp_grants"("state");

-- CreateIndex
CREATE INDEX "mcp_grants_user_id_organization_id_idx" ON "mcp_grants"("user_id", "organization_id");

-- AddForeignKey
ALTER TABLE "organization_secrets" ADD CONSTRAINT "organization_secrets_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mcp_grants" ADD CONSTRAINT "mcp_grants_organization_id_server_id_fkey" FOREIGN KEY ("organization_id", "server_id") REFERENCES "mcp_servers"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "mcp_grants" ADD CONSTRAINT "mcp_grants_user_id_organization_id_fkey" FOREIGN KEY ("user_id", "organization_id") REFERENCES "members"("user_id", "organization_id") ON DELETE CASCADE ON UPDATE CASCADE;
