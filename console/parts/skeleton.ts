import { html, type VNode } from '../ui.ts'

/** Grey lines in the place of rows that are loading. */
export const Skeleton = ({ rows = 6 }: { rows?: number }): VNode =>
  html`<div class="skeleton" role="status"><span class="unseen">Loading…</span>${Array.from({ length: rows }, (_, row) => html`<div key=${row} aria-hidden="true" />`)}</div>`
