import type { EntryProps } from '../../parts/form.ts'
import { html, signal, useEffect, useState, type VNode } from '../../ui.ts'
import { clockOf, expressionOf, inWords, KINDS, nextRuns, type Preset, presetOf, WEEKDAYS } from './cron.ts'

/** Timing in the form that is open, which two of its entries make. */
const entered = signal({ expression: '', zone: '' })
const enter = (change: Partial<typeof entered.value>): void => {
  entered.value = { ...entered.value, ...change }
}

const DEFAULT = '0 8 * * 1-5'
const FIRST: Preset = { kind: 'weekdays', minute: 0, hour: 8, day: 1 }

/** Entry of a cron expression, with choices of usual times that write it. */
export function CronEntry({ common, label, value, notes }: EntryProps): VNode {
  const [expression, setExpression] = useState(typeof value === 'string' && value !== '' ? value : DEFAULT)
  const [isCustom, setCustom] = useState(false)
  useEffect(() => enter({ expression }), [expression])
  const preset = isCustom ? undefined : presetOf(expression)
  const kind = preset?.kind ?? 'custom'
  const choose = (event: Event) => {
    const chosen = (event.target as HTMLSelectElement).value as keyof typeof KINDS
    setCustom(chosen === 'custom')
    if (chosen !== 'custom') setExpression(expressionOf({ ...(presetOf(expression) ?? FIRST), kind: chosen }))
  }
  const change = (part: Partial<Preset>) => preset && setExpression(expressionOf({ ...preset, ...part }))
  return html`<div class="field">
    <div class="timing">
      <div><label for=${`${common.id}-kind`}>Repeats</label> <select id=${`${common.id}-kind`} value=${kind} onChange=${choose}>${Object.entries(
        KINDS,
      ).map(
        ([name, title]) => html`<option key=${name} value=${name} selected=${name === kind}>${title}</option>`,
      )}</select></div>
      ${preset && html`<${Parts} id=${common.id} preset=${preset} onChange=${change} />`}
    </div>
    <label for=${common.id}>${label}</label>
    <input ...${common} class="code" spellcheck=${false} value=${expression} onInput=${(event: Event) => setExpression((event.target as HTMLInputElement).value)} />
    ${notes}
  </div>`
}

type PartsProps = { id: string; preset: Preset; onChange(part: Partial<Preset>): void }

/** Choices that belong to a preset. */
function Parts({ id, preset, onChange }: PartsProps): VNode {
  const { kind, minute, day } = preset
  const textOf = (event: Event) => (event.target as HTMLInputElement | HTMLSelectElement).value
  const setNumber = (name: 'minute' | 'day') => (event: Event) => {
    const number = Number(textOf(event))
    if (textOf(event) !== '' && Number.isInteger(number)) onChange({ [name]: number })
  }
  const setTime = (event: Event) => {
    const [hour, at] = textOf(event).split(':').map(Number)
    if (hour !== undefined && at !== undefined) onChange({ hour, minute: at })
  }
  if (kind === 'hour')
    return html`<div><label for=${`${id}-minute`}>Minute</label> <input id=${`${id}-minute`} type="number" min="0" max="59" value=${minute} onInput=${setNumber('minute')} /></div>`
  return html`
    ${
      kind === 'week' &&
      html`<div><label for=${`${id}-on`}>On</label> <select id=${`${id}-on`} onChange=${setNumber('day')}>${WEEKDAYS.map(
        (name, index) => html`<option key=${name} value=${index} selected=${index === day}>${name}</option>`,
      )}</select></div>`
    }
    ${kind === 'month' && html`<div><label for=${`${id}-day`}>Day</label> <input id=${`${id}-day`} type="number" min="1" max="31" value=${day} onInput=${setNumber('day')} /></div>`}
    <div><label for=${`${id}-time`}>At</label> <input id=${`${id}-time`} type="time" value=${clockOf(preset)} onInput=${setTime} /></div>`
}

/** Entry of a time zone, with the names that the browser knows, and below it what the timing amounts to. */
export function ZoneEntry({ common, label, value, notes }: EntryProps): VNode {
  const zone = typeof value === 'string' ? value : ''
  useEffect(() => enter({ zone }), [zone])
  return html`<div class="field"><label for=${common.id}>${label}</label>
    <input ...${common} list="zones" defaultValue=${zone} onInput=${(event: Event) => enter({ zone: (event.target as HTMLInputElement).value.trim() })} />
    <datalist id="zones">${['UTC', ...Intl.supportedValuesOf('timeZone')].map((name) => html`<option key=${name} value=${name} />`)}</datalist>
    ${notes}<${Preview} />
  </div>`
}

const SHOWN_RUNS = 3

/** Says in words when a schedule runs, and when it runs next. */
function Preview(): VNode | null {
  const { expression, zone } = entered.value
  if (expression.trim() === '') return null
  const words = `${inWords(expression) ?? 'As the expression says'}, ${zone || 'UTC'}`
  return html`<div class="preview-runs" role="status"><p>${words}</p>${runsOf(expression, zone || 'UTC')}</div>`
}

function runsOf(expression: string, zone: string): VNode {
  try {
    const runs = nextRuns(expression, zone, Date.now(), SHOWN_RUNS)
    if (runs === undefined) return html`<p class="quiet">The next runs are shown once it is saved.</p>`
    if (runs.length === 0) return html`<p class="quiet">It never runs.</p>`
    return html`<p class="quiet">Next: ${runs.map((at) => timeOf(at, zone)).join(' · ')}</p>`
  } catch {
    return html`<p class="quiet">This browser does not know the time zone.</p>`
  }
}

/** Returns a time as a list of runs has it: `Mon, 30 Nov, 08:00`. */
export const timeOf = (at: number, zone: string): string =>
  new Date(at).toLocaleString(undefined, {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    timeZone: zone,
  })
