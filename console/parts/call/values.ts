import { html, useMemo, type VNode } from '../../ui.ts'
import { LongText } from '../long-text.ts'

type Props = { values: Record<string, unknown>; label: string }

/** Values that are shown one by one; the others follow as JSON. */
const MAX_VALUES = 50
/** Longest text that stands beside its name. */
const SHORT_CHARACTERS = 200

/** Values by their names. Nested ones are JSON. */
export function Values({ values, label }: Props): VNode {
  const entries = Object.entries(values)
  const others = entries.slice(MAX_VALUES)
  return html`<div role="group" aria-label=${label}><dl class="values">${entries
    .slice(0, MAX_VALUES)
    .map(
      ([name, value]) =>
        html`<div key=${name}><dt dir="auto">${name.slice(0, SHORT_CHARACTERS)}</dt><dd><${Value} value=${value} label=${name.slice(0, SHORT_CHARACTERS)} /></dd></div>`,
    )}</dl>    ${others.length > 0 && html`<${LongText} text=${JSON.stringify(Object.fromEntries(others), null, 2)} label="Others" />`}</div>`
}

/** One value: a short one in its line, a long text as it is, a nested one as JSON. */
function Value({ value, label }: { value: unknown; label: string }): VNode {
  const text = useMemo(() => (typeof value === 'string' ? value : JSON.stringify(value, null, 2)), [value])
  if (text === '') return html`<i class="quiet">empty</i>`
  const isShort = text.length <= SHORT_CHARACTERS && !text.includes('\n')
  if (isShort) return html`<span class=${typeof value === 'string' ? '' : 'literal'} dir="auto">${text}</span>`
  return html`<${LongText} text=${text} label=${label} />`
}
