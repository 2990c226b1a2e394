import type { Database } from '../../../contract/databases.ts'
import type { SessionDatabase } from '../../../prisma/generated/client.ts'
import { PAGE_BYTES } from './sqlite-runner/sqlite-runner.ts'

export const presentDatabase = (row: SessionDatabase): Database => ({
  name: row.name,
  size_bytes: row.pageCount * PAGE_BYTES,
  page_count: row.pageCount,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})
