import { link } from '../../router.ts'
import { html, useMemo, type VNode } from '../../ui.ts'
import { LongText } from '../long-text.ts'
import { CodeLines } from './code-lines.ts'
import { differenceOf, numbered } from './lines.ts'
import { type Given, type Shape, shapeOf } from './shapes.ts'
import { Values } from './values.ts'

type Props = {
  name: string
  given: Given | undefined
  /** Content of the file that the call would replace. */
  before?: string | undefined
  /** Session whose files the call names. */
  sessionId?: string | undefined
}

/** Arguments of a call for people: a file as lines or as its changes, SQL and commands as code, others by name. */
export function CallArguments({ name, given = {}, before, sessionId }: Props): VNode | null {
  const shape = useMemo(() => shapeOf(name, given), [name, given])
  const label = `Arguments of ${name}`
  if (shape.kind === 'values' && Object.keys(given).length === 0) return null
  if (shape.kind === 'values') return html`<${Values} values=${shape.others} label=${label} />`
  return html`<div class="arguments">
    <${Main} shape=${shape} label=${label} before=${before} sessionId=${sessionId} />
    ${'others' in shape && Object.keys(shape.others).length > 0 && html`<${Values} values=${shape.others} label=${`More of ${name}`} />`}
  </div>`
}

type MainProps = { shape: Exclude<Shape, { kind: 'values' }>; label: string } & Pick<Props, 'before' | 'sessionId'>

function Main({ shape, label, before, sessionId }: MainProps): VNode {
  const { kind } = shape
  if (kind === 'text')
    return html`<p class="label" dir="auto">${shape.name}</p><${LongText} text=${shape.text} label=${label} />`
  if (kind === 'command')
    return html`<div class="command"><span class="prompt" aria-hidden="true">$</span><${LongText} text=${shape.text} label=${label} /></div>`
  if (kind === 'sql')
    return html`${shape.database && html`<p class="label">Database <code dir="auto">${shape.database}</code></p>`}
      <${LongText} text=${shape.text} label=${label} />`
  const [old, now] = kind === 'edit' ? [shape.before, shape.after] : [before, shape.text]
  return html`<p class="label"><${FilePath} path=${shape.path} sessionId=${sessionId} /></p>
    <${FileText} old=${old} now=${now} label=${label} />`
}

/** Text of a file, or its changes if the old text is given. */
function FileText({ old, now, label }: { old: string | undefined; now: string; label: string }): VNode {
  const changes = useMemo(() => (old === undefined ? undefined : differenceOf(old, now)), [old, now])
  const lines = useMemo(() => changes ?? numbered(now), [changes, now])
  if (lines === undefined)
    return html`${old !== undefined && html`<p class="quiet">Too long to compare. The new text:</p>`}<${LongText} text=${now} label=${label} />`
  if (lines.length === 0) return html`<p class="quiet">Empty.</p>`
  return html`<${CodeLines} lines=${lines} label=${label} isDifference=${changes !== undefined} />`
}

/** Link to a file of the session, or its path. */
export function FilePath({ path, sessionId }: { path: string; sessionId: string | undefined }): VNode {
  if (sessionId === undefined || !path.startsWith('/')) return html`<code dir="auto">${path}</code>`
  const to = link('sessions', sessionId, 'files', ...path.split('/').filter(Boolean))
  return html`<a href=${to}><code dir="auto">${path}</code></a>`
}
