-- AlterTable
ALTER TABLE "organizations" ADD COLUMN     "expired_event" BIGINT NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "tool_call_leases" (
    "turn_id" UUID NOT NULL,
    "tool_call_id" TEXT NOT NULL,
    "holder" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "tool_call_leases_pkey" PRIMARY KEY ("turn_id","tool_call_id")
);

-- CreateIndex
CREATE INDEX "tool_call_leases_expires_at_idx" ON "tool_call_leases"("expires_at");

-- AddForeignKey
ALTER TABLE "tool_call_leases" ADD CONSTRAINT "tool_call_leases_turn_id_fkey" FOREIGN KEY ("turn_id") REFERENCES "turns"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Copied from prisma/functions/number_organization_events.sql, which has the manual.
CREATE OR REPLACE FUNCTION number_organization_events(p_organizations uuid[])
RETURNS TABLE (organization_id uuid, last_event bigint, has_more boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_organization uuid;
BEGIN
  FOR v_organization IN
    SELECT id FROM organizations o
    WHERE id = ANY (p_organizations)
      AND EXISTS (SELECT FROM organization_events e WHERE e.organization_id = o.id AND e.sequence IS NULL)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    -- A statement of its own, which sees what was committed before the lock was taken.
    WITH given AS (
      SELECT e.position, o.last_event + row_number() OVER (ORDER BY e.position) AS number
      FROM organizations o CROSS JOIN LATERAL (
        SELECT position FROM organization_events
        WHERE organization_id = o.id AND sequence IS NULL ORDER BY position LIMIT 10000
      ) AS e
      WHERE o.id = v_organization
    ), numbered AS (
      UPDATE organization_events e SET sequence = given.number FROM given WHERE e.position = given.position
    )
    UPDATE organizations o SET last_event = coalesce((SELECT max(number) FROM given), o.last_event)
    WHERE o.id = v_organization;
  END LOOP;
  RETURN QUERY
    SELECT id, o.last_event,
      EXISTS (SELECT FROM organization_events e WHERE e.organization_id = o.id AND e.sequence IS NULL)
    FROM organizations o WHERE id = ANY (p_organizations);
END $$;
