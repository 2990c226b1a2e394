import { html, type VNode } from '../ui.ts'
import { IconCopy } from './copy.ts'

/** Lines of code with a button that copies them. */
export const Code = ({ text, label }: { text: string; label: string }): VNode => html`<div class="code-block">
  <pre class="text wide" tabindex="0" role="group" aria-label=${label}>${text}</pre><${IconCopy} text=${text} label="Copy the code" />
</div>`
