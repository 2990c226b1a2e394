import { html, useEffect, useState, type VNode } from '../ui.ts'

/** Time after which a load that has not ended says so. */
const LATE_MS = 10_000

/** Button that loads the whole page again, which repairs a request that was lost on its way. */
export const Again = (): VNode => html`<button type="button" onClick=${() => location.reload()}>Try again</button>`

/** Grey lines in the place of rows that are loading. */
export function Skeleton({ rows = 6 }: { rows?: number }): VNode {
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(setLate, LATE_MS, true)
    return () => clearTimeout(timer)
  }, [])
  return html`<div class="skeleton" role="status">
    ${isLate ? html`<p>Loading takes longer than usual.</p><${Again} />` : html`<span class="unseen">Loading…</span>`}
    ${Array.from({ length: rows }, (_, row) => html`<div key=${row} aria-hidden="true" />`)}</div>`
}
