import { BUDGET_TOOL } from '../../contract/budgets.ts'
import type { RequestedCall } from '../../contract/turns.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { audit } from '../kit/audit/entry.ts'
import type { Deps } from '../kit/deps.ts'
import { forbidden } from '../kit/errors.ts'
import { fromId, toId } from '../kit/ids.ts'
import { presentCost } from '../kit/usage.ts'

type Row = {
  id: string
  scope: string
  isInUsd: boolean
  limit: Prisma.Decimal
  step: Prisma.Decimal
  spent: Prisma.Decimal
  period: 'total' | 'day' | 'month'
  onReached: 'stop' | 'ask'
}

const columns = Prisma.sql`id, scope::text, is_in_usd AS "isInUsd", "limit" + raised AS limit, step, spent, period::text,
  on_reached::text AS "onReached"`

/** Returns an amount of a budget in words, such as `2.5 USD`. */
const amountOf = ({ isInUsd }: Row, sum: Prisma.Decimal): string => `${presentCost(sum)} ${isInUsd ? 'USD' : 'tokens'}`

/** Returns the call by which a turn asks to raise a budget that is used up. Undefined if the budget only stops turns. */
export async function budgetQuestion(
  { db }: Pick<Deps, 'db'>,
  budgetId: string,
  callId: string,
): Promise<RequestedCall | undefined> {
  const [row] = await db.$queryRaw<Row[]>`SELECT ${columns} FROM budgets WHERE id = ${budgetId}::uuid`
  if (row?.onReached !== 'ask') return undefined
  const args = {
    budget_id: toId('budget', row.id),
    scope: row.scope,
    period: row.period,
    limit: amountOf(row, row.limit),
    spent: amountOf(row, row.spent),
    raise_by: amountOf(row, row.step),
  }
  return { id: callId, name: BUDGET_TOOL, arguments: args, kind: 'approval' }
}

/**
 * Raises the budget of an approved call by its step, in the approval's transaction, unless it was raised or changed since
 * the turn asked, or has a new period. Throws `forbidden` for a member who may not change the budget: others' turns count towards it, too.
 */
export async function raiseBudget(
  db: Prisma.TransactionClient,
  actor: Actor,
  turnId: string,
  { budget_id, scope, limit }: Record<string, unknown>,
): Promise<void> {
  const id = fromId(String(budget_id))
  if (actor.role === 'member' && scope !== 'turn' && scope !== 'session')
    throw forbidden('Only owners and administrators of the organization may raise this budget')
  // As reserve_budgets does: the turn, and then its budgets, whose periods begin.
  await db.$queryRaw`SELECT 1 FROM turns WHERE id = ${turnId}::uuid FOR NO KEY UPDATE`
  await lockBudgets(db, budgetsOf(turnId))
  const raised = await db.$executeRaw`
    UPDATE budgets SET raised = raised + step, told = 0, updated_at = now()
    WHERE id = ${id}::uuid AND organization_id = ${actor.organizationId}::uuid
      AND told = 100 AND trim_scale("limit" + raised)::text = split_part(${String(limit)}, ' ', 1)`
  if (raised > 0)
    await audit(db, actor, { action: 'budget.raise', target: id, details: { turn_id: toId('turn', turnId) } })
}

const SCOPES: Record<string, string> = {
  turn: "The turn's budget",
  session: "The session's budget",
  agent: "The agent's budget",
  api_key: "The API key's budget",
  user: "The user's budget",
  organization: "The organization's budget",
}
const PERIODS = { total: '', day: ' a day', month: ' a month' }

/** Returns a sentence that names a used-up budget of a turn. Undefined if there is none any more. */
export async function describeReached({ db }: Pick<Deps, 'db'>, turnId: string): Promise<string | undefined> {
  const ids = await lockBudgets(db, budgetsOf(turnId))
  return nameReached(db, ids, Prisma.sql`told = 100`)
}

const budgetsOf = (turnId: string): Prisma.Sql =>
  Prisma.sql`SELECT lock_budgets(t)::text[] AS ids FROM turns t WHERE t.id = ${turnId}::uuid`

/** Begins the current periods of budgets, by a query of the function lock_budgets. Returns their ids. */
export async function lockBudgets(db: Prisma.TransactionClient, query: Prisma.Sql): Promise<string[]> {
  const [row] = await db.$queryRaw<{ ids: string[] }[]>(query)
  return row?.ids ?? []
}

/** Returns a sentence that names the first of these budgets that meets a condition. */
export async function nameReached(
  db: Prisma.TransactionClient,
  ids: string[],
  condition: Prisma.Sql,
): Promise<string | undefined> {
  const [row] = await db.$queryRaw<Row[]>`
    SELECT ${columns} FROM budgets WHERE id = ANY (${ids}::uuid[]) AND ${condition} ORDER BY id LIMIT 1`
  if (row === undefined) return undefined
  return `${SCOPES[row.scope]} of ${amountOf(row, row.limit)}${PERIODS[row.period]} is used up.`
}
