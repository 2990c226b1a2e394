import { html, type VNode } from '../ui.ts'

/** Mark of the product: spans of a turn, one of them interrupted and continued. The page of invitations has it, too. */
export const Mark = (): VNode => html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
  <rect class="mark-ground" width="24" height="24" rx="6" />
  <path d="M5 7.5h10M5 12h4M13 12h6M9 16.5h10" /></svg>`
