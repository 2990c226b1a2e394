import { Prisma } from '../../prisma/generated/client.ts'

/** Uuid that stands for nobody, and for nothing, in usage_hours. */
export const NOBODY = '00000000-0000-0000-0000-000000000000'

/** Columns of usage_hours by which usage is asked for. */
export const USAGE_COLUMN = {
  session: Prisma.sql`session_id`,
  agent: Prisma.sql`agent_id`,
  api_key: Prisma.sql`api_key_id`,
  user: Prisma.sql`user_id`,
  model: Prisma.sql`model`,
}
