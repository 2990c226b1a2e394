import { AgentSelect } from '../../parts/agent-select.ts'
import { Icon } from '../../parts/icon.ts'
import { RUN_ERRORS } from '../../parts/run-errors.ts'
import { go, route } from '../../router.ts'
import { html, useEffect, useRef, useState, type VNode } from '../../ui.ts'
import { FILTERS, PERIODS, runsLink } from './filters.ts'

/** Pause in typing after which the words are searched. */
const PAUSE_MS = 400
const MAX_SEARCH = 256

const change = (name: string, value: string): void =>
  go(runsLink(route.value.query, { [name]: value }), { replace: true })

/** Filters of runs besides the status. All are in the address. */
export function FilterBar(): VNode {
  const { query } = route.value
  const isFiltered = FILTERS.some((name) => query.has(name))
  const nothing = Object.fromEntries(FILTERS.map((name) => [name, undefined]))
  const errors = Object.entries(RUN_ERRORS).map(([value, label]) => ({ value, label }))
  return html`<form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
    <${Search} value=${query.get('search') ?? ''} onChange=${(text: string) => change('search', text)} />
    <${AgentSelect} aria-label="Agent" none="All agents" value=${query.get('agent_id')} onChange=${(id: string) => change('agent_id', id)} />
    <${Choice} label="Error" none="All errors" name="error_code" options=${errors} />
    <${TimeChoice} />
    <${Choice} label="Order" none="Newest first" name="order" options=${[{ value: 'longest', label: 'Longest running first' }]} />
    ${query.has('session_id') && html`<span class="badge quiet">Of one session</span>`}
    ${query.has('user_id') && html`<span class="badge quiet">Of one person</span>`}
    ${isFiltered && html`<a class="button" href=${runsLink(query, nothing)}><${Icon} name="cross" />Clear filters</a>`}
  </form>`
}

type Option = { value: string; label: string }
type ChoiceProps = {
  label: string
  none: string
  name: string
  options: Option[]
  /** Default: changes the address. */
  onChange?(value: string): void
}

function Choice({ label, none, name, options, onChange = (value) => change(name, value) }: ChoiceProps): VNode {
  const chosen = route.value.query.get(name) ?? ''
  const isKnown = chosen === '' || options.some(({ value }) => value === chosen)
  const choose = (event: Event) => onChange((event.target as HTMLSelectElement).value)
  return html`<select aria-label=${label} onChange=${choose}>
    <option value="" selected=${chosen === ''}>${none}</option>
    ${!isKnown && html`<option value=${chosen} selected>${chosen}</option>`}
    ${options.map(({ value, label: text }) => html`<option key=${value} value=${value} selected=${value === chosen}>${text}</option>`)}
  </select>`
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
  return html`<${Choice} label="Time" none=${isExact ? timesOf(from, to) : ANY.label} name="last" onChange=${onChange}
    options=${isExact ? [...PERIOD_OPTIONS, ANY] : PERIOD_OPTIONS} />`
}

function timesOf(from: string | null, to: string | null): string {
  const text = (time: string) => {
    const at = new Date(time)
    return Number.isNaN(at.getTime()) ? time : at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
  }
  return [from && `From ${text(from)}`, to && `${from ? 'to' : 'To'} ${text(to)}`].filter(Boolean).join(' ')
}

function Search({ value, onChange }: { value: string; onChange(text: string): void }): VNode {
  const [text, setText] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  // The address may change by itself, as by a link or by going back.
  useEffect(() => {
    if (text.trim() !== value) setText(value)
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  const search = (words: string, ms: number) => {
    setText(words)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => onChange(words.trim()), ms)
  }
  const type = (event: Event) => search((event.target as HTMLInputElement).value, PAUSE_MS)
  const press = (event: KeyboardEvent) => event.key === 'Enter' && search(text, 0)
  return html`<input type="search" aria-label="Search messages" placeholder="Search messages" maxlength=${MAX_SEARCH} value=${text} dir="auto"
    autocomplete="off" onInput=${type} onKeyDown=${press} />`
}
