import type { Budget } from 'agent-session-client'
import { useEvery, useLoad } from '../../load.ts'
import { useAgentNames } from '../../parts/agent-select.ts'
import { Badge } from '../../parts/badge.ts'
import { commandFor } from '../../parts/command.ts'
import { costOf } from '../../parts/cost.ts'
import { Empty } from '../../parts/empty.ts'
import { Icon } from '../../parts/icon.ts'
import { Menu, type MenuItem } from '../../parts/menu.ts'
import { Problem } from '../../parts/page.ts'
import { plain } from '../../parts/plain.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import { Bar } from './chart.ts'
import { readScopeNames, SCOPES } from './scopes.ts'

/** Interval between reads of the budgets. */
const LOOK_MS = 10_000
const MAX_SHARE = 0.8

const PERIODS: Record<Budget['period'], string> = { total: 'In total', day: 'Each day', month: 'Each month' }

/** Budgets with what is used of them. */
export function Budgets(): VNode {
  const { value: budgets, error, reload, refresh } = useLoad(async () => (await api.budgets.list()).data, [])
  const agentNameOf = useAgentNames(budgets?.map(({ agent_id }) => agent_id) ?? [])
  const scopes = [...new Set(budgets?.map(({ scope }) => scope))].sort()
  const { value: names } = useLoad(() => readScopeNames(scopes), [scopes.join()])
  useEvery(LOOK_MS, refresh)
  const nameOf = (budget: Budget): string => {
    const { title, read } = SCOPES[budget.scope]
    const id = read?.(budget)
    return id ? `${title} “${agentNameOf(id) || (names?.get(id) ?? id)}”` : title
  }
  const create = html`<a class="button primary" href=${link('costs', 'budgets', 'new')}><${Icon} name="plus" />New budget</a>`
  const none = html`<${Empty} icon="cost" title="No budgets yet" action=${create}
    about="A budget limits what the organization, an agent, a person, an API key or a session may spend on models."
    code=${commandFor('/v1/budgets', { scope: 'organization', period: 'month', limit_usd: '50' })} />`
  const columns: Column<Budget>[] = [
    {
      title: 'Budget for',
      cell: (budget) =>
        html`<a class="clipped" href=${link('costs', 'budgets', budget.id)} title=${plain(nameOf(budget))}>${nameOf(budget)}</a>`,
    },
    { title: 'Used', cell: (budget) => html`<${Used} budget=${budget} />` },
    {
      title: 'Period',
      cell: ({ period, period_end }) =>
        html`${PERIODS[period]}${period_end && html`<span class="quiet"> · starts anew <${Time} at=${period_end} /></span>`}`,
    },
    { title: 'When reached', cell: ({ on_reached }) => (on_reached === 'ask' ? 'Asks to raise it' : 'Stops') },
  ]
  return html`<section aria-label="Budgets" class="budgets">
    <div class="row"><h2>Budgets</h2>${budgets && budgets.length > 0 && create}</div>
    <${Problem} error=${error} />
    ${
      (budgets !== undefined || error === undefined) &&
      html`<${Table} items=${budgets} keyOf=${({ id }: Budget) => id} columns=${columns} none=${none}
      actions=${(budget: Budget) => html`<${Menu} label=${`Actions for ${nameOf(budget)}`} items=${menuOf(budget, nameOf(budget), reload)} />`} />`
    }
  </section>`
}

function menuOf({ id }: Budget, name: string, onDone: () => void): MenuItem[] {
  const remove = async () => {
    await api.budgets.delete({ budget_id: id })
    onDone()
  }
  return [
    { label: 'Change', icon: 'edit', href: link('costs', 'budgets', id) },
    {
      label: 'Delete',
      icon: 'trash',
      isDangerous: true,
      question: `Delete the budget for ${name}? Nothing limits this spending then.`,
      run: remove,
    },
  ]
}

/** Returns the amounts of a budget in its unit. */
export function amountsOf(budget: Budget): { limit: number; spent: number; reserved: number; show(n: number): string } {
  const isUsd = budget.limit_usd !== null && budget.limit_usd !== undefined
  const number = (usd: string | null | undefined, tokens: number | null | undefined) =>
    Number((isUsd ? usd : tokens) ?? 0)
  return {
    limit: number(budget.limit_usd, budget.limit_tokens),
    spent: number(budget.spent_usd, budget.spent_tokens),
    reserved: number(budget.reserved_usd, budget.reserved_tokens),
    show: (amount) => (isUsd ? costOf(`${amount}`) : amount.toLocaleString()),
  }
}

/** Bar of what is spent and reserved, with the same in words. */
function Used({ budget }: { budget: Budget }): VNode {
  const { limit, spent, reserved, show } = amountsOf(budget)
  const unit = budget.limit_usd ? '' : ' tokens'
  const tone = spent >= limit ? 'bad' : spent >= limit * MAX_SHARE ? 'wait' : ''
  return html`<div class="used">
    <${Bar} part=${spent / limit} reserved=${(spent + reserved) / limit} tone=${tone} />
    <span>${show(spent)} of ${show(limit)}${unit}${reserved > 0 && `, ${show(reserved)} reserved`}</span>
    ${spent >= limit && html`<${Badge} status="reached" word="Reached" tone="bad" icon="alert" />`}
  </div>`
}
