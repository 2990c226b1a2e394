-- AlterTable
ALTER TABLE "llm_providers" ADD COLUMN     "key_secret_name" TEXT;

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

-- AddForeignKey
ALTER TABLE "organization_secrets" ADD CONSTRAINT "organization_secrets_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;
