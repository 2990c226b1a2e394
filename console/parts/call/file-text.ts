import { html, useMemo, type VNode } from '../../ui.ts'
import { LongText } from '../long-text.ts'
import { CodeLines } from './code-lines.ts'
import { differenceOf, numbered } from './lines.ts'

type Props = {
  text: string
  label: string
  /** Text that it takes the place of. */
  before?: string | undefined
  /** Number of its first line. Without one, the lines have no numbers. */
  first?: number | 'unknown'
}

/** Text of a file with the numbers of its lines, or its changes if the old text is given. */
export function FileText({ text, label, before, first = 1 }: Props): VNode {
  const changes = useMemo(() => (before === undefined ? undefined : differenceOf(before, text)), [before, text])
  const lines = useMemo(() => changes ?? numbered(text), [changes, text])
  if (lines === undefined)
    return html`${before !== undefined && html`<p class="quiet">The texts are too long to compare. This is the new one:</p>`}
      <${LongText} text=${text} label=${label} />`
  if (lines.length === 0) return html`<p class="quiet">The file is empty.</p>`
  return html`<${CodeLines} lines=${lines} first=${first} label=${label} isDifference=${changes !== undefined} />`
}
