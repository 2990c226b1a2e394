import type { Budget } from '../../contract/budgets.ts'
import { type Budget as BudgetRow, Prisma } from '../../prisma/generated/client.ts'
import type { OrganizationScope } from '../kit/actor.ts'
import type { Deps } from '../kit/deps.ts'
import { toId } from '../kit/ids.ts'
import { presentCost } from '../kit/usage.ts'

/** Budget with the sum of its reservations. */
type ReadBudget = BudgetRow & { reservations: { amount: Prisma.Decimal }[] }

/** Reads budgets of an organization, newest first, with the sums of the current period. */
export async function readBudgets(
  { db }: Deps,
  { organizationId }: OrganizationScope,
  where: Prisma.BudgetWhereInput,
): Promise<Budget[]> {
  const rows = await db.budget.findMany({
    where: { ...where, organizationId },
    include: { reservations: { select: { amount: true } } },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: MAX_BUDGETS,
  })
  return rows.map((row) => presentBudget(row, new Date()))
}

/** Maximum number of budgets of an organization, without the budgets of single turns. */
export const MAX_BUDGETS = 1000

function presentBudget(row: ReadBudget, now: Date): Budget {
  const { scopeId, scope, period } = row
  const periodStart = period === 'total' ? row.periodStart : startOfPeriod(period, now)
  const isOver = periodStart > row.periodStart
  const reserved = row.reservations.reduce((sum, { amount }) => sum.add(amount), new Prisma.Decimal(0))
  const limit = isOver ? row.limit : row.limit.add(row.raised)
  return {
    id: toId('budget', row.id),
    scope,
    turn_id: scope === 'turn' ? toId('turn', scopeId) : null,
    session_id: row.sessionId && toId('session', row.sessionId),
    agent_id: scope === 'agent' ? toId('agent', scopeId) : null,
    api_key_id: scope === 'api_key' ? scopeId : null,
    user_id: scope === 'user' ? scopeId : null,
    ...inUnit('limit', row, limit),
    ...inUnit('step', row, row.step),
    period,
    on_reached: row.onReached,
    period_start: periodStart.toISOString(),
    period_end: period === 'total' ? null : endOfPeriod(period, periodStart).toISOString(),
    ...inUnit('spent', row, isOver ? new Prisma.Decimal(0) : row.spent),
    ...inUnit('reserved', row, reserved),
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  }
}

/** Returns an amount in the unit of its budget, and null in the other one. */
const inUnit = <N extends string>(name: N, { isInUsd }: BudgetRow, amount: Prisma.Decimal) =>
  ({
    [`${name}_usd`]: isInUsd ? presentCost(amount) : null,
    [`${name}_tokens`]: isInUsd ? null : amount.toNumber(),
    // The keys are the two that the names make.
  }) as { [K in `${N}_usd`]: string | null } & { [K in `${N}_tokens`]: number | null }

/** Returns the beginning of the day or month, in UTC. */
export const startOfPeriod = (period: 'day' | 'month', at: Date): Date =>
  new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), period === 'day' ? at.getUTCDate() : 1))

const endOfPeriod = (period: 'day' | 'month', start: Date): Date =>
  period === 'day'
    ? new Date(start.getTime() + 24 * 3_600_000)
    : new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1))
