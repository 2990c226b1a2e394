-- CreateTable
CREATE TABLE "audit_entries" (
    "id" UUID NOT NULL,
    "organization_id" UUID NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "action" TEXT NOT NULL,
    "user_id" UUID,
    "api_key_id" UUID,
    "address" TEXT,
    "request_id" TEXT,
    "target_id" UUID NOT NULL,
    "details" JSONB NOT NULL DEFAULT '{}',

    CONSTRAINT "audit_entries_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "audit_entries_organization_id_created_at_id_idx" ON "audit_entries"("organization_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "audit_entries_organization_id_action_created_at_id_idx" ON "audit_entries"("organization_id", "action", "created_at", "id");

-- CreateIndex
CREATE INDEX "audit_entries_organization_id_user_id_created_at_id_idx" ON "audit_entries"("organization_id", "user_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "audit_entries_organization_id_api_key_id_created_at_id_idx" ON "audit_entries"("organization_id", "api_key_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "audit_entries_organization_id_target_id_created_at_id_idx" ON "audit_entries"("organization_id", "target_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "audit_entries_created_at_idx" ON "audit_entries"("created_at");

-- AddForeignKey
ALTER TABLE "audit_entries" ADD CONSTRAINT "audit_entries_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organizations"("id") ON DELETE CASCADE ON UPDATE CASCADE;
-- Copied from prisma/functions/refuse_audit_update.sql, which has the manual.
CREATE OR REPLACE FUNCTION refuse_audit_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'entries of the audit log do not change';
END $$;

CREATE OR REPLACE TRIGGER refuse_audit_update BEFORE UPDATE ON audit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_update();
