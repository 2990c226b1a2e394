import type { Budget, CreateBudgetRequest, TurnBudget, UpdateBudgetRequest } from '../../contract/budgets.ts'
import type { BudgetId, SessionId, TurnId } from '../../contract/kit/ids.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { audit, audited, givenFields } from '../kit/audit/entry.ts'
import { createOnce } from '../kit/create-once.ts'
import type { Deps } from '../kit/deps.ts'
import { invalid, notFound, quotaExceeded } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { newUuid } from '../kit/ids.ts'
import { lockOrganization } from '../kit/lock-organization.ts'
import { MAX_BUDGETS, readBudgets, startOfPeriod } from './present-budget.ts'
import { USAGE_COLUMN } from './usage-columns.ts'

type Scope = CreateBudgetRequest['scope']

/** Newest first. Budgets of single turns are listed with their session only. */
export const listBudgets = (
  deps: Deps,
  actor: Actor,
  { scope, session_id: sessionId }: { scope?: Scope | undefined; session_id?: SessionId | undefined },
): Promise<Budget[]> => {
  const ofSession = sessionId === undefined ? { scope: { not: 'turn' as const } } : { sessionId }
  return readBudgets(deps, actor, { AND: [ofSession, scope === undefined ? {} : { scope }] })
}

/** Throws `not_found`. */
export async function getBudget(deps: Deps, actor: Actor, id: BudgetId): Promise<Budget> {
  const [budget] = await readBudgets(deps, actor, { id })
  if (budget === undefined) throw notFound('Budget')
  return budget
}

/**
 * Creates a budget, which begins with what its scope has used in the period. Throws `not_found` for what the
 * organization does not have, and `conflict` at the limit of budgets.
 */
export async function createBudget(
  deps: Deps,
  actor: Actor,
  input: CreateBudgetRequest,
  attempt: CreationAttempt,
): Promise<Budget> {
  const { organizationId } = actor
  const { id } = await createOnce(attempt, {
    find: (id) => deps.db.budget.findFirst({ where: { id, organizationId }, select: { id: true } }),
    insert: (id) =>
      deps.db.$transaction(async (tx) => {
        const scopeId = await requireScope(tx, actor, input)
        await lockOrganization(tx, organizationId)
        const count = await tx.budget.count({ where: { organizationId, scope: { not: 'turn' } } })
        if (count >= MAX_BUDGETS)
          throw quotaExceeded(`The organization has ${MAX_BUDGETS} budgets, which is the limit; delete one first`)
        const period = input.period ?? 'total'
        const now = new Date()
        const periodStart = period === 'total' ? now : startOfPeriod(period, now)
        const data = {
          ...{ id, organizationId, scope: input.scope, scopeId, period, periodStart },
          sessionId: input.session_id ?? null,
          ...amountsOf(input),
          spent: await usedSince(
            tx,
            { organizationId, ...input, scopeId },
            period === 'total' ? undefined : periodStart,
          ),
        }
        const [row] = await tx.budget.createManyAndReturn({ data: [data], skipDuplicates: true, select: { id: true } })
        if (row !== undefined)
          await audit(tx, actor, { action: 'budget.create', target: id, details: givenFields(input) })
        return row
      }),
  })
  return getBudget(deps, actor, id as BudgetId)
}

/** Returns the columns of a budget's limit and of what happens when it is reached. */
export function amountsOf({ limit_usd, limit_tokens, step_usd, step_tokens, on_reached }: TurnBudget) {
  const limit = new Prisma.Decimal(limit_usd ?? limit_tokens ?? 0)
  const step = new Prisma.Decimal(step_usd ?? step_tokens ?? limit)
  return { isInUsd: limit_usd != null, limit, step, onReached: on_reached ?? 'stop' }
}

/** Returns the id of the thing that a budget is for. Throws `not_found`. */
async function requireScope(
  db: Prisma.TransactionClient,
  { organizationId }: Actor,
  { scope, session_id, agent_id, api_key_id, user_id }: CreateBudgetRequest,
): Promise<string> {
  if (scope === 'organization') return organizationId
  const id = { session: session_id, agent: agent_id, api_key: api_key_id, user: user_id }[scope] ?? ''
  const [found] = await db.$queryRaw<unknown[]>`
    SELECT 1 FROM ${Prisma.raw(TABLES[scope])} WHERE ${Prisma.raw(scope === 'user' ? 'user_id' : 'id')} = ${id}::uuid
      AND organization_id = ${organizationId}::uuid`
  if (found === undefined)
    throw notFound({ session: 'Session', agent: 'Agent', api_key: 'API key', user: 'User' }[scope])
  return id
}

const TABLES = { session: 'sessions', agent: 'agents', api_key: 'api_keys', user: 'members' } as const

/** Sums what a scope has used, in the unit of its budget. */
async function usedSince(
  db: Prisma.TransactionClient,
  { organizationId, scope, scopeId, limit_usd }: CreateBudgetRequest & { organizationId: string; scopeId: string },
  since: Date | undefined,
): Promise<Prisma.Decimal> {
  const amount = Prisma.raw(limit_usd == null ? 'input_tokens + output_tokens' : 'cost_usd')
  const ofScope = scope === 'organization' ? Prisma.empty : Prisma.sql`AND ${USAGE_COLUMN[scope]} = ${scopeId}::uuid`
  const [row] = await db.$queryRaw<{ used: Prisma.Decimal }[]>`
    SELECT coalesce(sum(${amount}), 0)::numeric AS used FROM usage_hours
    WHERE organization_id = ${organizationId}::uuid ${ofScope}
      AND hour >= ${since?.toISOString() ?? '-infinity'}::timestamptz`
  return row?.used ?? new Prisma.Decimal(0)
}

/** Inserts the budget of one turn, in the transaction that inserts the turn. */
export const insertTurnBudget = (
  db: Prisma.TransactionClient,
  { organizationId, sessionId, turnId }: { organizationId: string; sessionId: SessionId; turnId: TurnId },
  input: TurnBudget,
): Promise<unknown> =>
  db.budget.create({
    data: {
      ...{ id: newUuid(), organizationId, sessionId, scope: 'turn', scopeId: turnId },
      ...{ period: 'total', periodStart: new Date() },
      ...amountsOf(input),
    },
  })

/** Changes a budget. Its new limit is told anew. Throws `not_found`, and `invalid` for an amount in another unit. */
export async function updateBudget(
  deps: Deps,
  actor: Actor,
  id: BudgetId,
  { on_reached, ...input }: UpdateBudgetRequest,
): Promise<Budget> {
  await deps.db.$transaction(async (tx) => {
    const [row] = await tx.$queryRaw<{ is_in_usd: boolean }[]>`
      SELECT is_in_usd FROM budgets
      WHERE id = ${id}::uuid AND organization_id = ${actor.organizationId}::uuid FOR NO KEY UPDATE`
    if (row === undefined) throw notFound('Budget')
    const limit = inUnitOf(row, input, 'limit')
    const step = inUnitOf(row, input, 'step')
    await tx.budget.update({
      where: { id },
      data: {
        ...(limit === undefined ? {} : { limit, raised: 0, told: 0 }),
        ...(step === undefined ? {} : { step }),
        ...(on_reached == null ? {} : { onReached: on_reached }),
      },
    })
    await audit(tx, actor, { action: 'budget.update', target: id, details: givenFields({ ...input, on_reached }) })
  })
  return getBudget(deps, actor, id)
}

function inUnitOf({ is_in_usd }: { is_in_usd: boolean }, input: UpdateBudgetRequest, name: 'limit' | 'step') {
  const [own, other] = is_in_usd ? (['usd', 'tokens'] as const) : (['tokens', 'usd'] as const)
  if (input[`${name}_${other}`] != null) {
    throw invalid(`${name}_${other}: the budget is in ${is_in_usd ? 'USD' : 'tokens'}; give ${name}_${own}`)
  }
  return input[`${name}_${own}`] ?? undefined
}

/** Deletes a budget. Calls under way go on. Throws `not_found`. */
export const deleteBudget = (deps: Deps, actor: Actor, id: BudgetId): Promise<void> =>
  audited(deps, actor, { action: 'budget.delete', target: id }, async (tx) => {
    const { count } = await tx.budget.deleteMany({ where: { id, organizationId: actor.organizationId } })
    if (count === 0) throw notFound('Budget')
  })
