import type { UsageRow } from 'agent-session-client'
import { costOf } from '../../parts/cost.ts'
import { html, type VNode } from '../../ui.ts'
import { type Day, dayOf, tokensOf } from './usage.ts'

/** What the bars show. */
export const MEASURES: Record<string, { title: string; read(row: UsageRow): number; show(value: number): string }> = {
  cost: { title: 'Cost', read: ({ cost_usd }) => Number(cost_usd), show: (usd) => costOf(`${usd}`) },
  tokens: { title: 'Tokens', read: tokensOf, show: (count) => count.toLocaleString() },
}

const HEIGHT = 100
const GAP = 0.2

/** Bars for the days of a period. The table of days says the same in words. */
export function Chart({ days, measure }: { days: Day[]; measure: string }): VNode | null {
  const { title, read, show } = MEASURES[measure] ?? MEASURES.cost ?? {}
  if (read === undefined || show === undefined) return null
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
