import { sleep } from '../../lib/sleep.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../kit/deps.ts'
import type { MostCost } from '../models/llm/cost.ts'

/** Model call to reserve for. `cost`: the prices of its tokens, null if unknown. */
export type PlannedCall = {
  turnId: string
  step: string
  /** Orders the attempts of the step. */
  fence: number
  inputTokens: number
  outputTokens: number
  cost: MostCost | null
  mayBeUnpriced: boolean
}

/**
 * `reserved`: the call may be made, with at most `outputTokens`. `reached`: a budget is used up. `unpriced`: a budget in
 * USD cannot count a call with an unknown price. `ended`: the turn is over, or waits. `fenced`: another attempt has the
 * step.
 */
export type Reservation =
  | { outcome: 'reserved'; outputTokens: number }
  | { outcome: 'reached' | 'unpriced'; budget: string }
  | { outcome: 'ended' }
  | { outcome: 'fenced' }

type Row = { outcome: Reservation['outcome'] | 'busy'; budget?: string; output_tokens?: number }

/** Least output that is worth a call near the end of a budget. */
const LEAST_TOKENS = 256
/** Time in which other calls may give back what they have reserved and not used. */
const BUSY_MS = 5 * 60_000
const BUSY_POLL_MS = 250
const MAX_BUSY_POLL_MS = 2000

/**
 * Reserves the most that a model call can cost in the budgets of its turn. Waits while calls under way have reserved what
 * is left. Throws the signal's reason when it aborts.
 */
export async function reserveBudgets(
  { db }: Pick<Deps, 'db'>,
  { turnId, step, fence, inputTokens, outputTokens, cost, mayBeUnpriced }: PlannedCall,
  signal: AbortSignal,
): Promise<Reservation> {
  const until = performance.now() + BUSY_MS
  for (let pauseMs = BUSY_POLL_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_BUSY_POLL_MS)) {
    signal.throwIfAborted()
    const [row] = await db.$queryRaw<{ result: Row }[]>`
      SELECT reserve_budgets(${turnId}::uuid, ${step}, ${fence}::bigint, ${inputTokens}::bigint, ${outputTokens}::bigint,
        ${cost?.inputUsd ?? null}::numeric, ${cost?.outputUsd ?? null}::numeric, ${LEAST_TOKENS}::bigint,
        ${mayBeUnpriced}) AS result`
    const { outcome, budget = '', output_tokens = 0 } = row?.result ?? { outcome: 'busy' }
    if (outcome === 'reserved') return { outcome, outputTokens: output_tokens }
    if (outcome === 'ended' || outcome === 'fenced') return { outcome }
    if (outcome !== 'busy') return { outcome, budget }
    if (performance.now() > until) return { outcome: 'reached', budget }
    await sleep(pauseMs, signal)
  }
}

/** SQL that tells whether a turn, with the alias t, counts towards any budget. */
export const hasBudgetsSql = Prisma.sql`EXISTS (SELECT FROM budgets_counting(t))`

/** Gives back what a call has reserved that the provider refused. */
export const releaseBudgets = (db: Prisma.TransactionClient, turnId: string, step: string): Promise<unknown> =>
  db.budgetReservation.deleteMany({ where: { turnId, step } })
