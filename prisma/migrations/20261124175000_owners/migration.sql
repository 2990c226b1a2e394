-- AlterTable
ALTER TABLE "organizations" ADD COLUMN     "owner_id" UUID;

-- CreateIndex
CREATE INDEX "organizations_owner_id_idx" ON "organizations"("owner_id");

-- By hand: sets the owners of organizations. The default organization has none.
UPDATE organizations SET owner_id = (
  SELECT user_id FROM members
  WHERE members.organization_id = organizations.id AND role = 'owner'
  ORDER BY created_at, user_id LIMIT 1
) WHERE id <> '00000000-0000-0000-0000-000000000001';
