-- CreateIndex
CREATE INDEX "turns_organization_id_idx" ON "turns"("organization_id");
