import { html, type VNode } from '../ui.ts'

export type Option = { value: string; label: string }

/** Returns the options of a choice from their labels by value. */
export const optionsOf = (labels: Record<string, string>): Option[] =>
  Object.entries(labels).map(([value, label]) => ({ value, label }))

type Props = {
  label: string
  /** Label of the empty choice. */
  none: string
  /** Chosen value. A link may have another one than the options. */
  value: string
  options: Option[]
  onChange(value: string): void
}

/** Choice that filters a list. */
export function Choice({ label, none, value: chosen, options, onChange }: Props): VNode {
  const isKnown = chosen === '' || options.some(({ value }) => value === chosen)
  return html`<select class="filter" aria-label=${label} onChange=${(event: Event) => onChange((event.target as HTMLSelectElement).value)}>
    <option value="" selected=${chosen === ''}>${none}</option>
    ${!isKnown && html`<option value=${chosen} selected>${chosen}</option>`}
    ${options.map(({ value, label: text }) => html`<option key=${value} value=${value} selected=${value === chosen}>${text}</option>`)}
  </select>`
}
