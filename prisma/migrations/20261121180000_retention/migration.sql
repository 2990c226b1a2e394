-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "deltas_deleted" BOOLEAN NOT NULL DEFAULT false;

-- From here on by hand: Prisma's schema language cannot express it.

-- For retention: turns with deltas, oldest first. Only the turns of the retention period, however long the history is.
CREATE INDEX turns_with_deltas ON turns (started_at, id) WHERE NOT deltas_deleted AND started_at IS NOT NULL;
