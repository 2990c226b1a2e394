-- AlterTable
ALTER TABLE "processes" ADD COLUMN     "lapsed_at" TIMESTAMPTZ(3);
