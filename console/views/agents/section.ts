import { type ComponentChildren, html, useState, type VNode } from '../../ui.ts'

type Props = {
  title: string
  count: number
  about: string
  /** Whether it is open at first. */
  isOpen: boolean
  children?: ComponentChildren
}

/** Part of the form that can be closed. Its head has the number of chosen things. */
export function Section({ title, count, about, isOpen, children }: Props): VNode {
  // It neither opens nor closes while its content changes.
  const [isOpenAtFirst] = useState(isOpen)
  return html`<details class="section" open=${isOpenAtFirst}>
    <summary><h2>${title}</h2> <span class="quiet">${count === 0 ? 'none' : count}</span></summary>
    <p class="quiet">${about}</p>
    ${children}
  </details>`
}
