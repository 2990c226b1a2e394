import { AgentSelect } from '../../parts/agent-select.ts'
import { Choice, type Option, optionsOf } from '../../parts/choice.ts'
import { Icon } from '../../parts/icon.ts'
import { RUN_ERRORS } from '../../parts/run-errors.ts'
import { SearchEntry } from '../../parts/search-box.ts'
import { go, route } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'
import { FILTERS, PERIODS, runsLink } from './filters.ts'

const change = (name: string, value: string): void =>
  go(runsLink(route.value.query, { [name]: value }), { replace: true })

const chosen = (name: string) => ({
  value: route.value.query.get(name) ?? '',
  onChange: (value: string) => change(name, value),
})

/** Filters of runs besides the status. All are in the address. */
export function FilterBar(): VNode {
  const { query } = route.value
  const isFiltered = FILTERS.some((name) => query.has(name))
  const nothing = Object.fromEntries(FILTERS.map((name) => [name, undefined]))
  return html`<form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
    <${SearchEntry} text=${query.get('search') ?? ''} label="Search messages" onSearch=${(text: string) => change('search', text)} />
    <${AgentSelect} aria-label="Agent" none="All agents" value=${query.get('agent_id')} onChange=${(id: string) => change('agent_id', id)} />
    <${Choice} label="Error" none="All errors" ...${chosen('error_code')} options=${optionsOf(RUN_ERRORS)} />
    <${TimeChoice} />
    <${Choice} label="Order" none="Newest first" ...${chosen('order')} options=${optionsOf({ longest: 'Longest running first' })} />
    ${query.has('session_id') && html`<span class="badge quiet">Of one session</span>`}
    ${query.has('user_id') && html`<span class="badge quiet">Of one person</span>`}
    ${isFiltered && html`<a class="button" href=${runsLink(query, nothing)}><${Icon} name="cross" />Clear filters</a>`}
  </form>`
}

const PERIOD_OPTIONS = Object.entries(PERIODS).map(([value, { title }]) => ({ value, label: title }))

const ANY: Option = { value: 'any', label: 'Any time' }

/** Choice of a period. A link may have other times. */
function TimeChoice(): VNode {
  const { query } = route.value
  const [from, to] = [query.get('from'), query.get('to')]
  const isExact = Boolean(from ?? to)
  const onChange = (value: string) => {
    const last = value === ANY.value ? undefined : value
    go(runsLink(route.value.query, { from: undefined, to: undefined, last }), { replace: true })
  }
  return html`<${Choice} label="Time" none=${isExact ? timesOf(from, to) : ANY.label} ...${chosen('last')} onChange=${onChange}
    options=${isExact ? [...PERIOD_OPTIONS, ANY] : PERIOD_OPTIONS} />`
}

function timesOf(from: string | null, to: string | null): string {
  const text = (time: string) => {
    const at = new Date(time)
    return Number.isNaN(at.getTime()) ? time : at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
  }
  return [from && `From ${text(from)}`, to && `${from ? 'to' : 'To'} ${text(to)}`].filter(Boolean).join(' ')
}
