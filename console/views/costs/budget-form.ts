import type { Budget, CreateBudgetRequest, UpdateBudgetRequest } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { optionsOf } from '../../parts/choice.ts'
import { type Field, Form, givenOf, type Values } from '../../parts/form.ts'
import { Page, Problem } from '../../parts/page.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { go, link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { SCOPES, scopeField, titlesOf } from './scopes.ts'

type Unit = 'usd' | 'tokens'

const BACK = { title: 'Costs', href: link('costs') }
const SCOPE: Field = {
  name: 'scope',
  label: 'For',
  kind: 'choice',
  isRequired: true,
  options: optionsOf(titlesOf(SCOPES)).filter(({ value }) => value !== 'turn'),
}
const UNIT: Field = {
  name: 'unit',
  label: 'Counted in',
  kind: 'choice',
  isRequired: true,
  options: optionsOf({ usd: 'US dollars', tokens: 'Tokens' }),
}
const PERIOD: Field = {
  name: 'period',
  label: 'Period',
  kind: 'choice',
  isRequired: true,
  hint: 'Days and months begin at midnight UTC.',
  options: optionsOf({ month: 'Each month', day: 'Each day', total: 'In total, without an end' }),
}
const ON_REACHED: Field = {
  name: 'on_reached',
  label: 'When it is reached',
  kind: 'choice',
  isRequired: true,
  options: optionsOf({ stop: 'Stop: runs fail', ask: 'Ask: runs wait until somebody raises it' }),
}

/** Entries of the limit and the step, in the unit of the budget. */
function amountFields(unit: Unit): Field[] {
  const isUsd = unit === 'usd'
  const one = (name: string, label: string, more: Partial<Field>): Field => ({
    name: `${name}_${unit}`,
    label: `${label}, in ${isUsd ? 'US dollars' : 'tokens'}`,
    kind: isUsd ? 'text' : 'number',
    limits: isUsd ? { inputmode: 'decimal' } : { min: 1, step: 1 },
    ...more,
  })
  return [
    one('limit', 'Limit', { isRequired: true, hint: isUsd ? 'Such as 2.50' : undefined }),
    one('step', 'Raised by', { hint: 'Used when it asks. Empty: by the limit.' }),
  ]
}

/** Form of a budget: new, or for a budget that exists, whose scope, unit and period stay. */
export const BudgetForm = ({ id }: { id: string }): VNode =>
  id === 'new' ? html`<${NewBudget} />` : html`<${EditBudget} id=${id} />`

function NewBudget(): VNode {
  const [scope, setScope] = useState('organization')
  const [unit, setUnit] = useState<Unit>('usd')
  const { value: field, error } = useLoad(() => scopeField(scope), [scope])
  // The entries follow what is chosen in others.
  const follow = ({ target }: Event) => {
    const { name, value } = target as HTMLSelectElement
    if (name === 'field-scope') setScope(value)
    if (name === 'field-unit') setUnit(value as Unit)
  }
  const isOfScope = field !== undefined && SCOPES[scope as keyof typeof SCOPES].read !== undefined
  const fields = [SCOPE, ...(isOfScope ? [field] : []), UNIT, ...amountFields(unit), PERIOD, ON_REACHED]
  const create = async (values: Values) => {
    const { unit: _, ...body } = givenOf(values)
    await api.budgets.create(body as CreateBudgetRequest)
    go(link('costs'), { replace: true })
  }
  return html`<${Page} title="New budget" back=${BACK}>
    <${Problem} error=${error} />
    <div onChange=${follow}><${Form} fields=${fields} values=${{ scope: 'organization', unit: 'usd', period: 'month', on_reached: 'stop' }} action="Create" onSubmit=${create} /></div>
  <//>`
}

function EditBudget({ id }: { id: string }): VNode {
  const { value: budget, error } = useLoad(() => api.budgets.get({ budget_id: id }), [id])
  const save = async (values: Values) => {
    await api.budgets.update({ budget_id: id, ...(values as UpdateBudgetRequest) })
    go(link('costs'), { replace: true })
  }
  return html`<${Page} title=${budget ? `Budget for ${SCOPES[budget.scope].title.toLowerCase()}` : 'Budget'} back=${BACK}>
    <${Problem} error=${error} />
    ${budget === undefined && error === undefined && html`<${Skeleton} />`}
    ${budget && html`<${Form} fields=${[...amountFields(unitOf(budget)), ON_REACHED]} values=${budget} action="Save" onSubmit=${save} />`}
  <//>`
}

const unitOf = ({ limit_usd }: Budget): Unit => (typeof limit_usd === 'string' ? 'usd' : 'tokens')
