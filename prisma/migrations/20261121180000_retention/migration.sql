-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "deltas_deleted" BOOLEAN NOT NULL DEFAULT false;

-- From here on by hand: what Prisma's schema language has no words for.

-- Turns whose deltas are still there, oldest first, for retention: as many as its period has, however long the history is.
CREATE INDEX turns_with_deltas ON turns (started_at, id) WHERE NOT deltas_deleted AND started_at IS NOT NULL;
