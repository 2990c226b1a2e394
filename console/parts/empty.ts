import { type ComponentChildren, html, type VNode } from '../ui.ts'
import { Code } from './code.ts'
import { Icon } from './icon.ts'

type Props = { icon: string; title: string; about?: ComponentChildren; action?: ComponentChildren; code?: string }

/** Place of a list that has nothing yet: what such a thing is, one button, and the code that makes one. */
export const Empty = ({ icon, title, about, action, code }: Props): VNode => html`<section class="empty">
  <${Icon} name=${icon} />
  <h2>${title}</h2>
  ${about && html`<p class="quiet">${about}</p>`}
  ${action && html`<div class="actions">${action}</div>`}
  ${code && html`<${Code} text=${code} label="Command" />`}
</section>`
