import { html, useMemo, type VNode } from '../../ui.ts'
import { LongText } from '../long-text.ts'
import { FilePath } from './file-path.ts'
import { FileText } from './file-text.ts'
import { type Given, type Shape, shapeOf } from './shapes.ts'
import { Values } from './values.ts'

type Props = {
  name: string
  given: Given | undefined
  /** Content of the file that the call would replace. */
  before?: string | undefined
  /** Line of the file at which an edit begins, once it is known. */
  line?: number | undefined
  /** Session whose files the call names. */
  sessionId?: string | undefined
}

/** Arguments of a call for people: a file as lines or as its changes, SQL and commands as code, others by name. */
export function CallArguments({ name, given = {}, sessionId, ...file }: Props): VNode | null {
  const shape = useMemo(() => shapeOf(name, given), [name, given])
  const label = `Arguments of ${name}`
  if (Object.keys(given).length === 0) return null
  if (shape.kind === 'values') return html`<${Values} values=${shape.others} label=${label} sessionId=${sessionId} />`
  return html`<div class="arguments">
    <${Main} ...${file} shape=${shape} label=${label} sessionId=${sessionId} />
    ${'others' in shape && Object.keys(shape.others).length > 0 && html`<${Values} values=${shape.others} label=${`More of ${name}`} />`}
  </div>`
}

type MainProps = { shape: Exclude<Shape, { kind: 'values' }>; label: string } & Pick<
  Props,
  'before' | 'line' | 'sessionId'
>

function Main({ shape, label, before, line, sessionId }: MainProps): VNode {
  const { kind } = shape
  if (kind === 'command')
    return html`<div class="command"><span class="prompt" aria-hidden="true">$</span><${LongText} text=${shape.text} label=${label} /></div>`
  if (kind === 'sql')
    return html`${shape.database && html`<p class="label">Database <code dir="auto">${shape.database}</code></p>`}
      <${LongText} text=${shape.text} label=${label} />`
  if (kind === 'text') {
    if (shape.name === 'path')
      return html`<p class="label"><${FilePath} path=${shape.text} sessionId=${sessionId} /></p>`
    return html`<p class="label" dir="auto">${shape.name}</p><${LongText} text=${shape.text} label=${label} />`
  }
  const file =
    kind === 'edit'
      ? { before: shape.before, text: shape.after, first: line ?? 'unknown' }
      : { before, text: shape.text }
  return html`<p class="label"><${FilePath} path=${shape.path} sessionId=${sessionId} /></p>
    <${FileText} ...${file} label=${label} />`
}
