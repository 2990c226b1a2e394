import type { AgentVersionDiff } from 'agent-session-client'
import { CodeLines } from '../../parts/call/code-lines.ts'
import { differenceOf } from '../../parts/call/lines.ts'
import { LongText } from '../../parts/long-text.ts'
import { html, useMemo, type VNode } from '../../ui.ts'

type Change = AgentVersionDiff['changes'][number]

const LABELS: Record<string, string> = {
  name: 'Name',
  description: 'Description',
  system_prompt: 'Prompt',
  default_model_id: 'Model',
  tags: 'Tags',
  capabilities: 'Capabilities',
  tools: 'Tools',
  limits: 'Limits',
  output_schema: 'Output schema',
}
const labelOf = (field: string): string => LABELS[field] ?? field

/** Names fields in a sentence: `prompt, tags`. */
export const labelsOf = (fields: string[]): string => fields.map((field) => labelOf(field).toLowerCase()).join(', ')

type Props = { changes: Change[]; modelNameOf(id: string): string }

/** Differences of two versions: texts by lines, lists by what was added and removed. */
export const Changes = ({ changes, modelNameOf }: Props): VNode =>
  html`${changes.map((change) => {
    const from = change.field === 'default_model_id' ? namedModel(change.from, modelNameOf) : change.from
    const to = change.field === 'default_model_id' ? namedModel(change.to, modelNameOf) : change.to
    return html`<section key=${change.field} class="change"><h3>${labelOf(change.field)}</h3>
    ${Array.isArray(from) && Array.isArray(to) ? html`<${Items} from=${from} to=${to} />` : html`<${Texts} from=${textOf(from)} to=${textOf(to)} label=${`Changes of ${labelOf(change.field)}`} />`}
  </section>`
  })}`

const namedModel = (id: unknown, nameOf: (id: string) => string): string =>
  typeof id === 'string' ? nameOf(id) : 'the organization’s default'

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === null || value === undefined ? '' : JSON.stringify(value, null, 2)

/** Changes of a text by lines, or the new text if both are too long to compare. */
function Texts({ from, to, label }: { from: string; to: string; label: string }): VNode {
  const lines = useMemo(() => differenceOf(from, to), [from, to])
  if (lines === undefined) return html`<${LongText} text=${to} label=${label} />`
  return html`<${CodeLines} lines=${lines} first=${1} label=${label} isDifference />`
}

/** Items of a list that were added, removed or changed. Items are recognized by their names. */
function Items({ from, to }: { from: unknown[]; to: unknown[] }): VNode {
  const [old, now] = [new Map(from.map(keyed)), new Map(to.map(keyed))]
  const names = [...new Set([...old.keys(), ...now.keys()])]
  const changed = names.filter((name) => old.get(name) !== now.get(name))
  if (changed.length === 0) return html`<p class="quiet">Only the order has changed.</p>`
  return html`<ul class="changed-items">${changed.map((name) => {
    const [before, after] = [old.get(name), now.get(name)]
    if (before !== undefined && after !== undefined)
      return html`<li key=${name}><details><summary><code>${name}</code> changed</summary>
        <${Texts} from=${before} to=${after} label=${`Changes of ${name}`} /></details></li>`
    return before === undefined
      ? html`<li key=${name}><ins><code>${name}</code></ins> added</li>`
      : html`<li key=${name}><del><code>${name}</code></del> removed</li>`
  })}</ul>`
}

/** Returns the name of an item and its text. */
function keyed(item: unknown): [string, string] {
  const { ref, name } = (typeof item === 'object' && item !== null ? item : {}) as { ref?: unknown; name?: unknown }
  const text = textOf(item)
  return [typeof name === 'string' ? name : typeof ref === 'string' ? ref : text, text]
}
