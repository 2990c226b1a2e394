import type { Usage, UsageRow } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { costOf } from '../../parts/cost.ts'
import { Empty } from '../../parts/empty.ts'
import { ActionButton, Page, Problem, Quiet } from '../../parts/page.ts'
import { plain } from '../../parts/plain.ts'
import { saveFile } from '../../parts/save-file.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { type Column, Table } from '../../parts/table.ts'
import { runCommand } from '../../parts/use-from-code.ts'
import { link, route } from '../../router.ts'
import { api, fetchBlob, isAdministrator } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import { BudgetForm } from './budget-form.ts'
import { Budgets } from './budgets.ts'
import { Bar, Chart, MEASURES, type Measure } from './chart.ts'
import { titlesOf } from './scopes.ts'
import { DEFAULT_GROUPING, daysOf, GROUPINGS, PERIODS, periodOf } from './usage.ts'

/** Most rows of the table, and of the CSV file. */
const MAX_ROWS = 200
const MAX_CSV_ROWS = 10_000

/** Costs and budgets at `#/costs`, a budget's form at `#/costs/budgets/<id>` or `…/new`. */
export function View(): VNode {
  const [, part, id] = route.value.path
  if (!isAdministrator())
    return html`<${Page} title="Costs"><${Quiet}>Owners and administrators of the organization see what it spends, and set budgets.<//><//>`
  if (part === 'budgets' && id !== undefined) return html`<${BudgetForm} key=${id} id=${id} />`
  return html`<${Costs} />`
}

/** Returns the address with one choice changed. */
function costsLink(name: string, value: string): string {
  const query = new URLSearchParams(route.value.query)
  query.set(name, value)
  return `${link('costs')}?${query}`
}

function Costs(): VNode {
  const { query } = route.value
  const period = periodOf(query)
  const by = query.get('by') ?? ''
  const name = by in GROUPINGS ? by : DEFAULT_GROUPING
  const { group = 'agent', one = '', nameOf } = GROUPINGS[name] ?? {}
  const { from, days } = period
  const daily = useLoad(() => api.usage.get({ group_by: ['day'], from }), [from])
  const grouped = useLoad(() => api.usage.get({ group_by: [group], from, limit: MAX_ROWS }), [from, group])
  const { value } = daily
  const save = async () => {
    const groups = group === 'day' ? '' : `&group_by=${group}`
    const path = `/v1/usage?group_by=day${groups}&from=${from}&limit=${MAX_CSV_ROWS}`
    saveFile(`costs-by-${name}-${days}-days.csv`, await fetchBlob(path, 'text/csv'))
  }
  const asked = query.get('measure') ?? (Number(value?.total.cost_usd) > 0 ? 'cost' : 'tokens')
  const measured = asked === 'tokens' ? asked : 'cost'
  const measure = MEASURES[measured]
  return html`<${Page} title="Costs" actions=${html`<${ActionButton} icon="download" run=${save}>Save as CSV<//>`}>
    <div class="filters">
      <${Choices} label="Period" name="days" chosen=${`${days}`} options=${Object.fromEntries(PERIODS.map((some) => [`${some}`, `${some} days`]))} />
      <${Choices} label="Chart" name="measure" chosen=${measured} options=${titlesOf(MEASURES)} />
    </div>
    <${Problem} error=${daily.error ?? grouped.error} />
    ${value === undefined && daily.error === undefined && html`<${Skeleton} />`}
    ${value && html`<${Total} usage=${value} />`}
    ${value && value.total.calls > 0 && html`<${Chart} days=${daysOf(period, value.data)} measure=${measure} />`}
    ${
      value &&
      html`<${Choices} label="Grouped by" name="by" chosen=${name} className="tabs" options=${titlesOf(GROUPINGS)} />
      <${Rows} usage=${grouped.value} one=${one} nameOf=${nameOf} measure=${measure} />`
    }
    <${Budgets} />
  <//>`
}

type ChoicesProps = { label: string; name: string; chosen: string; options: Record<string, string>; className?: string }

/** Choices that are links, since the address keeps them. */
const Choices = ({ label, name, chosen, options, className = 'segments' }: ChoicesProps): VNode =>
  html`<nav class=${className} aria-label=${label}>${Object.entries(options).map(
    ([value, title]) =>
      html`<a key=${value} class=${className === 'tabs' ? '' : 'button'} href=${costsLink(name, value)} aria-current=${value === chosen ? 'true' : undefined}>${title}</a>`,
  )}</nav>`

function Total({ usage: { total } }: { usage: Usage }): VNode {
  const { calls, unpriced_calls, input_tokens, output_tokens } = total
  return html`<dl class="totals">
    <div><dt>Cost</dt><dd>${costIn(total)}</dd></div>
    <div><dt>Model calls</dt><dd>${calls.toLocaleString()}</dd></div>
    <div><dt>Tokens in</dt><dd>${input_tokens.toLocaleString()}</dd></div>
    <div><dt>Tokens out</dt><dd>${output_tokens.toLocaleString()}</dd></div>
  </dl>
  ${unpriced_calls > 0 && html`<p class="quiet">The price of ${unpriced_calls.toLocaleString()} ${unpriced_calls === 1 ? 'call is' : 'calls is'} unknown and not in the cost.</p>`}`
}

/** A group whose calls all have an unknown price does not cost nothing. */
const costIn = ({ calls, unpriced_calls, cost_usd }: UsageRow | Usage['total']): string =>
  calls > 0 && calls === unpriced_calls ? 'unknown' : costOf(cost_usd)

/** Part of a whole as a bar and in words. */
const Share = ({ part }: { part: number }): VNode =>
  html`<div class="used"><${Bar} part=${part} /><span>${part.toLocaleString(undefined, { style: 'percent' })}</span></div>`

type RowsProps = { usage: Usage | undefined; one: string; nameOf(row: UsageRow): string; measure: Measure }

function Rows({ usage, one, nameOf, measure }: RowsProps): VNode {
  const whole = usage === undefined ? 0 : measure.read(usage.total)
  const number = (name: string, read: (row: UsageRow) => number, isMinor = false): Column<UsageRow> => ({
    title: name,
    isNumber: true,
    isMinor,
    cell: (row) => (isMinor && read(row) === 0 ? '' : read(row).toLocaleString()),
  })
  const columns: Column<UsageRow>[] = [
    { title: one, cell: (row) => html`<span class="clipped" title=${plain(nameOf(row))}>${nameOf(row)}</span>` },
    {
      title: `Share of ${measure.title.toLowerCase()}`,
      cell: (row) => measure.read(row) > 0 && html`<${Share} part=${measure.read(row) / whole} />`,
    },
    { title: 'Cost', isNumber: true, cell: costIn },
    number('Calls', ({ calls }) => calls),
    number('Tokens in', (row) => row.input_tokens),
    number('Tokens out', (row) => row.output_tokens),
    number('From cache', (row) => row.cache_read_tokens, true),
    number('Unpriced calls', (row) => row.unpriced_calls, true),
  ]
  const none = html`<${Empty} icon="cost" title="No model calls yet" about="Each finished call of a model is counted here, also in runs that failed."
    action=${html`<a class="button primary" href=${link('sessions', 'new')}>New session</a>`} code=${runCommand()} />`
  return html`<div class="sums"><${Table} items=${usage?.data} keyOf=${(row: UsageRow) => keyOf(row)} columns=${columns} none=${none} /></div>
    ${usage?.has_more && html`<${Quiet}>Only the first ${MAX_ROWS} rows are shown. The CSV file has up to ${MAX_CSV_ROWS.toLocaleString()}.<//>`}`
}

const keyOf = ({ start, agent_id, model, user_id, api_key_id }: UsageRow): string =>
  [start, agent_id, model, user_id, api_key_id].join(' ')
