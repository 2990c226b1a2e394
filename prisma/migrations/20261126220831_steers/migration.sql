-- AlterTable
ALTER TABLE "turns" ADD COLUMN     "steer_sequence" INTEGER;
