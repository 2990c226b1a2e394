import { type ComponentChildren, html, useId, useState, type VNode } from '../../ui.ts'

type Props = {
  title: string
  count: number
  /** Explains the title's terms. */
  about: string
  /** Terms in the question that opens the explanation. Default: the title. */
  terms?: string
  /** Whether it is open at first. */
  isOpen: boolean
  children?: ComponentChildren
}

/** Part of the form that can be closed. Its head has the number of chosen things, and explains them on request. */
export function Section({ title, count, about, terms = title.toLowerCase(), isOpen, children }: Props): VNode {
  const id = useId()
  // It neither opens nor closes while its content changes.
  const [isOpenAtFirst] = useState(isOpen)
  return html`<div class="section">
    <details open=${isOpenAtFirst}>
      <summary><h2>${title}</h2> <span class="quiet">${count === 0 ? 'none' : count}</span></summary>
      ${children}
    </details>
    <button type="button" class="plain" popovertarget=${id}>What are ${terms}?</button>
    <p id=${id} popover="auto">${about}</p>
  </div>`
}
