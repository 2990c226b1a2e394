import type { ContentPart } from 'agent-session-client'
import { html, useMemo, type VNode } from '../../ui.ts'
import { Badge } from '../badge.ts'
import { LongText } from '../long-text.ts'
import { Pictures } from '../pictures.ts'
import { FilePath } from './file-path.ts'
import { FileText } from './file-text.ts'
import { parsed, type Result, resultOf } from './results.ts'
import { RowsTable } from './rows.ts'
import type { Given } from './shapes.ts'
import { Values } from './values.ts'

type Props = { name: string; content: ContentPart[]; given?: Given | undefined; sessionId?: string | undefined }

/** Result of a call: texts, tables, files and the output of commands, and its pictures. */
export function CallResult({ name, content, ...props }: Props): VNode {
  const value = useMemo(
    () => parsed(content.map((part) => (part.type === 'text' ? part.text : '')).join('')),
    [content],
  )
  return html`<${ResultValue} ...${props} name=${name} value=${value} /><${Pictures} content=${content} />`
}

type ValueProps = Omit<Props, 'content'> & { value: unknown }

/** Value that a call returned. */
export function ResultValue({ name, value, given, sessionId }: ValueProps): VNode | null {
  const result = useMemo(() => resultOf(value, given), [value, given])
  const label = `Result of ${name}`
  if (result.kind === 'nothing') return null
  if (result.kind === 'values') return html`<${Values} values=${result.values} label=${label} sessionId=${sessionId} />`
  if (result.kind === 'json') return html`<${LongText} text=${JSON.stringify(result.value, null, 2)} label=${label} />`
  if (result.kind === 'text') return html`<${LongText} text=${result.text} label=${label} />`
  return html`<div><${Main} result=${result} label=${label} sessionId=${sessionId} />
    ${hasAny(result.others) && html`<${Values} values=${result.others} label=${`More of the result of ${name}`} />`}</div>`
}

const hasAny = (values: Given): boolean => Object.keys(values).length > 0

type MainProps = { result: Extract<Result, { others: Given }>; label: string; sessionId: string | undefined }

function Main({ result, label, sessionId }: MainProps): VNode {
  if (result.kind === 'rows') return html`<${RowsTable} rows=${result.rows} label=${label} sessionId=${sessionId} />`
  if (result.kind === 'file')
    return html`${result.path && html`<p class="label"><${FilePath} path=${result.path} sessionId=${sessionId} /></p>`}
      <${FileText} text=${result.text} first=${result.first} label=${label} />`
  const { exitCode, stdout, stderr } = result
  return html`${exitCode !== 0 && html`<p class="label"><${ExitCode} code=${exitCode} /></p>`}
    ${stdout !== '' && html`<${LongText} text=${stdout} label=${label} />`}
    ${stderr !== '' && html`<p class="label">Errors (stderr)</p><${LongText} text=${stderr} label=${`Errors of the command`} />`}
    ${stdout === '' && stderr === '' && html`<p class="quiet">No output.</p>`}`
}

/** Exit code of a command that failed. */
export const ExitCode = ({ code }: { code: number }): VNode => html`<${Badge} status="error" word=${`Exit ${code}`} />`
