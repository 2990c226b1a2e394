import { z } from 'zod'
import { CostUsd, DateTime, listOf, unsupported } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { AgentId, ApiKeyId, BudgetId, SessionId, UserId, wireId, wireUuid } from './kit/ids.ts'

/** Name of the call by which a turn asks for more budget. */
export const BUDGET_TOOL = 'raise_budget'

const MAX_USD = 1_000_000_000
const MAX_TOKENS = 1_000_000_000_000_000
const DECIMALS = /^\d{1,10}(\.\d{1,6})?$/

const AMOUNT = `must be a text with an amount of USD above 0 and up to ${MAX_USD}, with at most six decimals, such as "2.50"`
/** Amount of USD as a decimal string, which no rounding of numbers changes. */
const usd = z
  .string({ error: AMOUNT })
  .refine((text) => DECIMALS.test(text) && Number(text) > 0 && Number(text) <= MAX_USD, { error: AMOUNT })
  .meta({ examples: ['2.50'] })
const tokens = z
  .int({ error: 'must be a whole number of tokens' })
  .min(1, { error: 'must be 1 or more' })
  .max(MAX_TOKENS, { error: `must be at most ${MAX_TOKENS}` })
  .meta({ format: 'int64' })

const OnReached = z.enum(['stop', 'ask']).meta({
  id: 'BudgetOnReached',
  description:
    'stop: the turn fails with the code budget_exceeded. ask: the turn waits for the approval of a call named raise_budget, which raises the limit by `step`.',
})

const limits = { limit_usd: usd.nullish(), limit_tokens: tokens.nullish() }
const steps = {
  step_usd: usd.nullish().meta({ description: 'Default: the limit.' }),
  step_tokens: tokens.nullish().meta({ description: 'Default: the limit.' }),
}
const namesElsewhere = {
  limit: unsupported('give limit_usd or limit_tokens'),
  amount: unsupported('give limit_usd or limit_tokens'),
  currency: unsupported('give limit_usd: amounts are in USD'),
  limit_eur: unsupported('give limit_usd: amounts are in USD'),
}

type Amounts = { [K in 'limit_usd' | 'limit_tokens' | 'step_usd' | 'step_tokens']?: unknown }
const hasOneUnit = ({ limit_usd: inUsd, limit_tokens: inTokens }: Amounts) => (inUsd == null) !== (inTokens == null)
const stepsInItsUnit = ({ limit_usd: inUsd, step_usd, step_tokens }: Amounts) =>
  inUsd == null ? step_usd == null : step_tokens == null
const ONE_UNIT = { error: 'one of limit_usd and limit_tokens is required' }
const SAME_UNIT = { error: 'the step must be in the unit of the limit' }

/** Budget of the turn that answers a message. */
export const TurnBudget = z
  .object({
    ...limits,
    ...steps,
    on_reached: OnReached.nullish().meta({ description: 'Default: stop.' }),
    ...namesElsewhere,
  })
  .refine(hasOneUnit, ONE_UNIT)
  .refine(stepsInItsUnit, SAME_UNIT)
  .meta({ id: 'TurnBudget', description: 'The most that the model calls of a turn may cost.' })
export type TurnBudget = z.infer<typeof TurnBudget>

const Scope = z.enum(['session', 'agent', 'api_key', 'user', 'organization']).meta({ id: 'SharedBudgetScope' })
const Period = z
  .enum(['total', 'day', 'month'])
  .meta({ id: 'BudgetPeriod', description: 'Days and months begin at midnight UTC.' })

const scoped = {
  session_id: SessionId.nullish(),
  agent_id: AgentId.nullish(),
  api_key_id: ApiKeyId.nullish(),
  user_id: UserId.nullish(),
}

export const CreateBudgetRequest = z
  .object({
    scope: Scope,
    ...scoped,
    ...limits,
    ...steps,
    period: Period.nullish().meta({ description: 'Default: total.' }),
    on_reached: OnReached.nullish().meta({ description: 'Default: stop.' }),
    ...namesElsewhere,
  })
  .refine(hasOneUnit, ONE_UNIT)
  .refine(stepsInItsUnit, SAME_UNIT)
  .superRefine(({ scope, session_id, agent_id, api_key_id, user_id }, ctx) => {
    for (const [field, id] of Object.entries({ session_id, agent_id, api_key_id, user_id })) {
      const isItsOwn = field === `${scope}_id`
      if (isItsOwn && id == null)
        ctx.addIssue({ code: 'custom', path: [field], message: `is required for the scope ${scope}` })
      if (!isItsOwn && id != null)
        ctx.addIssue({ code: 'custom', path: [field], message: `must be left out for the scope ${scope}` })
    }
  })
  .meta({ id: 'CreateBudgetRequest' })
export type CreateBudgetRequest = z.infer<typeof CreateBudgetRequest>

/** Changes to a budget. Its scope, unit and period stay. */
export const UpdateBudgetRequest = z
  .object({ ...limits, ...steps, on_reached: OnReached.nullish(), ...namesElsewhere })
  .meta({ id: 'UpdateBudgetRequest' })
export type UpdateBudgetRequest = z.infer<typeof UpdateBudgetRequest>

const count = z.int().min(0).meta({ format: 'int64' })

export const Budget = z
  .object({
    id: wireId('budget'),
    scope: z.enum(['turn', ...Scope.options]).meta({ id: 'BudgetScope' }),
    turn_id: wireId('turn').nullish(),
    session_id: wireId('session').nullish(),
    agent_id: wireId('agent').nullish(),
    api_key_id: wireUuid.nullish(),
    user_id: wireUuid.nullish(),
    limit_usd: CostUsd.nullish().meta({ description: 'With the steps by which it was raised in this period.' }),
    limit_tokens: count.nullish(),
    step_usd: CostUsd.nullish(),
    step_tokens: count.nullish(),
    period: Period,
    on_reached: OnReached,
    period_start: DateTime,
    period_end: DateTime.nullish().meta({ description: 'Null for a total.' }),
    spent_usd: CostUsd.nullish(),
    spent_tokens: count.nullish(),
    reserved_usd: CostUsd.nullish().meta({ description: 'The most that the calls under way can cost.' }),
    reserved_tokens: count.nullish(),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'Budget', description: 'Amounts are in USD or in tokens, as its limit is; the others are null.' })
export type Budget = z.infer<typeof Budget>

const params = z.object({ budget_id: BudgetId })

export const budgetEndpoints = group(
  { tag: 'budgets', path: '/v1/budgets', access: 'admin' },
  {
    list: {
      operationId: 'listBudgets',
      method: 'GET',
      summary: 'Lists the budgets, newest first',
      description: 'Budgets of single turns are left out, unless their session is given.',
      query: z.object({ scope: Scope.optional(), session_id: SessionId.optional() }),
      responses: { 200: listOf(Budget) },
    },
    create: {
      operationId: 'createBudget',
      method: 'POST',
      summary: 'Creates a budget',
      description:
        'It begins with what has been used in its period. A turn counts towards every budget that it is in the scope of.',
      body: CreateBudgetRequest,
      creates: true,
      responses: { 201: Budget },
    },
    get: {
      operationId: 'getBudget',
      method: 'GET',
      at: '/{budget_id}',
      summary: 'Gets a budget',
      params,
      responses: { 200: Budget },
    },
    patch: {
      operationId: 'updateBudget',
      method: 'PATCH',
      at: '/{budget_id}',
      summary: 'Changes the limit of a budget, its step, or what happens when it is reached',
      params,
      body: UpdateBudgetRequest,
      responses: { 200: Budget },
    },
    delete: {
      operationId: 'deleteBudget',
      method: 'DELETE',
      at: '/{budget_id}',
      summary: 'Deletes a budget',
      params,
      responses: { 204: null },
    },
  },
)
