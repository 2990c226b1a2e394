import type { TokenUsage } from '../../contract/kit/common.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import type { Deps } from '../kit/deps.ts'
import { quotaExceeded } from '../kit/errors.ts'
import { lockBudgets, nameReached } from './raise.ts'

/** Who pays for a model call outside of all turns. */
export type Payer = { actor: Actor; agentId: string }

/** What a finished call has used. `costUsd`: null if its price is unknown. */
export type Used = { model: string; usage: TokenUsage; costUsd: string | null }

/**
 * Throws `quota_exceeded` when a budget that the payer's calls count towards is used up, or is in USD and `isPriced` is
 * false. Such a call is not reserved: it is small, and the next one is refused.
 */
export async function refuseOverBudget({ db }: Pick<Deps, 'db'>, payer: Payer, isPriced: boolean): Promise<void> {
  const ids = await lockBudgets(db, Prisma.sql`SELECT lock_budgets(${rowOf(payer)})::text[] AS ids`)
  if (ids.length === 0) return
  const reached = await nameReached(db, ids, Prisma.sql`spent >= "limit" + raised`)
  if (reached !== undefined) throw quotaExceeded(reached.replace(/\.$/, ''))
  if (isPriced || (await db.budget.count({ where: { id: { in: ids }, isInUsd: true } })) === 0) return
  throw quotaExceeded("The price of the agent's model is unknown, so a budget in USD cannot count it")
}

/** Adds a call to the usage of its hour, to the sums of its agent, and to the payer's budgets. */
export async function chargeLoneCall({ db }: Pick<Deps, 'db'>, payer: Payer, used: Used): Promise<void> {
  const { actor, agentId } = payer
  const { usage, model, costUsd } = used
  const read = usage.cache_read_tokens ?? 0
  const written = usage.cache_creation_tokens ?? 0
  await db.$queryRaw`
    SELECT add_usage(${actor.organizationId}::uuid, NULL, ${agentId}::uuid, ${actor.userId}::uuid, ${actor.apiKeyId}::uuid, ${model},
      now(), ${usage.input_tokens}::bigint, ${usage.output_tokens}::bigint, ${read}::bigint, ${written}::bigint, ${costUsd}::numeric
    )::text, settle_budgets(${rowOf(payer)}, NULL, ${costUsd}::numeric, ${usage.input_tokens + usage.output_tokens}::bigint)::text`
}

/** A row of a turn that the payer's budgets count, and that exists only as this value. */
function rowOf({ actor: { organizationId, userId, apiKeyId }, agentId }: Payer): Prisma.Sql {
  const columns = { organization_id: organizationId, agent_id: agentId, user_id: userId, api_key_id: apiKeyId }
  return Prisma.sql`jsonb_populate_record(NULL::turns, ${JSON.stringify(columns)}::jsonb)`
}
