-- AlterTable
ALTER TABLE "sessions" ADD COLUMN     "approved_tools" JSONB NOT NULL DEFAULT '{}';
