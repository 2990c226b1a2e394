-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "traceparent" TEXT;
