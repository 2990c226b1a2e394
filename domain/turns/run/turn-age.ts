import { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { hasWorkerCallsSql } from '../worker-acts.ts'
import type { TurnContext } from './turn-context.ts'

/**
 * Whether a turn has run beyond its limit, not counting the time in which it waited for its client, or for a worker of its
 * organization or an agent.
 */
export async function isTooOld(deps: Deps, context: TurnContext): Promise<boolean> {
  const { maxTurnMs } = context.caps
  const ageMs = context.startedAt === null ? 0 : Date.now() - context.startedAt.getTime()
  return ageMs > maxTurnMs && ageMs - (await readWaitedMs(deps, context.turnId)) > maxTurnMs
}

/**
 * Reads how long a turn has waited: from each request to its client, and from the start of each act with calls of workers or agents,
 * until the calls ended, or until now.
 */
async function readWaitedMs({ db }: Deps, turnId: string): Promise<number> {
  const [row] = await db.$queryRaw<{ ms: number }[]>`
    SELECT coalesce(sum(extract(epoch FROM answered.at - asked.ts)) * 1000, 0)::float8 AS ms
    FROM events asked CROSS JOIN LATERAL (
      SELECT coalesce(min(ts), clock_timestamp()) AS at FROM events
      WHERE turn_id = asked.turn_id AND type IN ('act.completed', 'tool.call_requested') AND sequence > asked.sequence
    ) AS answered
    WHERE asked.turn_id = ${turnId}::uuid
      AND (asked.type = 'tool.call_requested' OR ${hasWorkerCallsSql(Prisma.sql`asked`)})`
  return row?.ms ?? 0
}
