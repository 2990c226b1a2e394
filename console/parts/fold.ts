import { type ComponentChildren, html, useState, type VNode } from '../ui.ts'

type Props = {
  summary: ComponentChildren
  /** Whether it is open until the user decides. A change opens or closes it. */
  isOpen?: boolean
  className?: string
  /** Returns the content. It is called only while the content is shown. */
  content: () => ComponentChildren
}

/** Content that is drawn once it is opened. */
export function Fold({ summary, isOpen = false, className, content }: Props): VNode {
  const [{ isShown, wasOpen }, setState] = useState({ isShown: isOpen, wasOpen: isOpen })
  if (wasOpen !== isOpen) setState({ isShown: isOpen, wasOpen: isOpen })
  const toggle = ({ currentTarget }: { currentTarget: HTMLDetailsElement }) =>
    setState((before) => ({ ...before, isShown: currentTarget.open }))
  return html`<details class=${className} open=${isOpen} onToggle=${toggle}>
    <summary>${summary}</summary>
    ${isShown && content()}
  </details>`
}
