import { budgetEndpoints } from '../../contract/budgets.ts'
import { usageEndpoints } from '../../contract/usage.ts'
import type { Deps } from '../../domain/deps.ts'
import { createBudget, deleteBudget, getBudget, listBudgets, updateBudget } from '../../domain/spending/budgets.ts'
import { readUsage } from '../../domain/spending/usage.ts'
import { csvOf } from '../http/csv.ts'
import { sendDownload } from '../http/file.ts'
import { type Handle, reply } from '../http/handle.ts'

export function budgetRoutes(handle: Handle, deps: Deps): void {
  handle(budgetEndpoints.list, async ({ actor, query }) => reply(200, { data: await listBudgets(deps, actor, query) }))
  handle(budgetEndpoints.create, async ({ actor, body, once }) =>
    reply(201, await once((attempt) => createBudget(deps, actor, body, attempt))),
  )
  handle(budgetEndpoints.get, async ({ actor, params }) => reply(200, await getBudget(deps, actor, params.budget_id)))
  handle(budgetEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await updateBudget(deps, actor, params.budget_id, body)),
  )
  handle(budgetEndpoints.delete, async ({ actor, params }) => {
    await deleteBudget(deps, actor, params.budget_id)
    return reply(204, undefined)
  })
  handle(usageEndpoints.get, async ({ actor, query, ctx }) => {
    const usage = await readUsage(deps, actor, query)
    if (ctx.accepts('application/json', 'text/csv') !== 'text/csv') return reply(200, usage)
    const columns = Object.keys(usage.data[0] ?? usage.total)
    const file = { contentType: 'text/csv; charset=utf-8', name: 'usage.csv', chunks: csvOf(usage.data, columns) }
    return sendDownload(ctx, deps.log, file)
  })
}
