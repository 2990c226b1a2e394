import { html, type VNode } from '../ui.ts'

/** Icon of the page's sprite (console/icons.svg). It is decoration: words beside it say the same. */
export const Icon = ({ name, className = '' }: { name: string; className?: string }): VNode =>
  html`<svg class=${`icon ${className}`} aria-hidden="true" focusable="false"><use href=${`#i-${name}`} /></svg>`
