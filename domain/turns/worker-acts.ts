import { Prisma } from '../../prisma/generated/client.ts'
import { TEMPORAL_VERSION } from '../tools/task-queues/temporal-tool.ts'

const PREFIX = JSON.stringify({ prefix: TEMPORAL_VERSION })

/** Returns the condition that an event `act.started` has calls that workers of the organization run. */
export const hasWorkerCallsSql = (event: Prisma.Sql): Prisma.Sql => Prisma.sql`(${event}.type = 'act.started'
  AND jsonb_path_exists(${event}.data, '$.versions[*] ? (@ starts with $prefix)', ${PREFIX}::jsonb))`
