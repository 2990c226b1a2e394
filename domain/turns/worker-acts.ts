import { Prisma } from '../../prisma/generated/client.ts'
import { AGENT_VERSION } from '../tools/agents/capability.ts'
import { TEMPORAL_VERSION } from '../tools/task-queues/temporal-tool.ts'

const PREFIXES = JSON.stringify({ ofWorker: TEMPORAL_VERSION, ofAgent: AGENT_VERSION })

/** Returns the condition that an event `act.started` has calls that workers of the organization run, or that ask agents. */
export const hasWorkerCallsSql = (event: Prisma.Sql): Prisma.Sql => Prisma.sql`(${event}.type = 'act.started'
  AND jsonb_path_exists(${event}.data, '$.versions[*] ? (@ starts with $ofWorker || @ starts with $ofAgent)', ${PREFIXES}::jsonb))`
