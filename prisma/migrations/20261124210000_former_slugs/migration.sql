-- AlterTable
ALTER TABLE "mcp_servers" ADD COLUMN     "former_slugs" TEXT[] DEFAULT ARRAY[]::TEXT[];
