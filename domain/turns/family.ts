import type { Turn } from '../../contract/turns.ts'
import type { Prisma, Turn as TurnRow } from '../../prisma/generated/client.ts'
import { toId } from '../kit/ids.ts'
import { presentCost, presentUsage } from '../kit/usage.ts'
import type { Deps } from './deps.ts'

/** The turn that has asked for a turn, and the sum of the turns below it, as a turn shows them. */
export type Family = Pick<Turn, 'parent' | 'children'>

type Row = {
  id: string
  parentId: string | null
  parentSessionId: string | null
  turns: number
  inputTokens: bigint
  outputTokens: bigint
  cacheReadTokens: bigint
  cacheCreationTokens: bigint
  costUsd: Prisma.Decimal | null
}

/** Reads the families of the turns that have one. Reads nothing for turns without. */
export async function readFamilies(
  { db }: Pick<Deps, 'db'>,
  turns: Pick<TurnRow, 'id' | 'children' | 'ancestors'>[],
): Promise<Map<string, Family>> {
  const ids = turns.flatMap(({ id, children, ancestors }) => (children > 0 || ancestors.length > 0 ? [id] : []))
  if (ids.length === 0) return new Map()
  const rows = await db.$queryRaw<Row[]>`
    SELECT t.id, p.id AS "parentId", p.session_id AS "parentSessionId", below.*
    FROM turns t
    LEFT JOIN turns p ON p.id = t.ancestors[array_upper(t.ancestors, 1)] AND p.organization_id = t.organization_id
    CROSS JOIN LATERAL (
      SELECT count(*)::int AS turns, coalesce(sum(input_tokens), 0)::bigint AS "inputTokens",
        coalesce(sum(output_tokens), 0)::bigint AS "outputTokens",
        coalesce(sum(cache_read_tokens), 0)::bigint AS "cacheReadTokens",
        coalesce(sum(cache_creation_tokens), 0)::bigint AS "cacheCreationTokens",
        CASE WHEN NOT coalesce(bool_or(cost_usd IS NULL), false) THEN coalesce(sum(cost_usd), 0) END AS "costUsd"
      FROM turns c WHERE c.ancestors @> ARRAY[t.id] AND c.ancestors IS NOT NULL AND c.organization_id = t.organization_id
    ) AS below
    WHERE t.id = ANY (${ids}::uuid[])`
  return new Map(rows.map((row) => [row.id, presentFamily(row)]))
}

const presentFamily = ({ parentId, parentSessionId, turns, ...sums }: Row): Family => ({
  parent:
    parentId === null || parentSessionId === null
      ? null
      : { session_id: toId('session', parentSessionId), turn_id: toId('turn', parentId) },
  children: turns === 0 ? null : { turns, usage: presentUsage(sums), cost_usd: presentCost(sums.costUsd) },
})
