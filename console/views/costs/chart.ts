import type { Usage, UsageRow } from 'agent-session-client'
import { costOf } from '../../parts/cost.ts'
import { html, type VNode } from '../../ui.ts'
import { type Day, dayOf, tokensOf } from './usage.ts'

export type Measure = { title: string; read(row: UsageRow | Usage['total']): number; show(value: number): string }

/** What the bars show. */
export const MEASURES: Record<'cost' | 'tokens', Measure> = {
  cost: { title: 'Cost', read: ({ cost_usd }) => Number(cost_usd), show: (usd) => costOf(`${usd}`) },
  tokens: { title: 'Tokens', read: tokensOf, show: (count) => count.toLocaleString() },
}

type BarProps = { part: number /** Part that includes what is reserved. */; reserved?: number; tone?: string }

/** Bar of a part of a whole. Words beside it say the same. */
export const Bar = ({
  part,
  reserved = part,
  tone = '',
}: BarProps): VNode => html`<svg class=${`used-bar ${tone}`} width="100%" height="6" aria-hidden="true">
  ${Object.entries({ ground: 1, reserved, spent: part }).map(([name, of]) => html`<rect key=${name} class=${name} width=${`${Math.min(1, of) * 100}%`} height="6" rx="3" />`)}</svg>`

const HEIGHT = 100
const GAP = 0.2

/** Bars for the days of a period. The table of days says the same in words. */
export function Chart({ days, measure: { title, read, show } }: { days: Day[]; measure: Measure }): VNode | null {
  const values = days.map(({ start, row }) => ({ start, value: row === undefined ? 0 : read(row) }))
  const most = Math.max(...values.map(({ value }) => value))
  const [first, last] = [values[0]?.start ?? '', values.at(-1)?.start ?? '']
  if (most === 0) return null
  const label = `${title} by day from ${dayOf(first)} to ${dayOf(last)}, at most ${show(most)}. The table of days has the numbers.`
  return html`<figure class="chart days">
    <div class="chart-top quiet" aria-hidden="true">${show(most)}</div>
    <svg viewBox=${`0 0 ${days.length} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${label}>
      ${values.map(({ start, value }, index) => {
        const height = (value / most) * HEIGHT
        return html`<g key=${start} class="day"><title>${dayOf(start)}: ${show(value)}</title>
          <rect class="ground" x=${index} y="0" width="1" height=${HEIGHT} />
          <rect class="bar" x=${index + GAP / 2} y=${HEIGHT - height} width=${1 - GAP} height=${height} /></g>`
      })}
    </svg>
    <div class="chart-axis quiet" aria-hidden="true"><span>${dayOf(first)}</span><span>${dayOf(values[Math.floor(values.length / 2)]?.start ?? '')}</span><span>${dayOf(last)}</span></div>
  </figure>`
}
