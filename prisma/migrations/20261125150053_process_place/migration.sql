-- AlterTable
ALTER TABLE "processes" ADD COLUMN     "place" TEXT;
