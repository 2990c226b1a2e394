import { link } from '../../router.ts'
import { html, useMemo, type VNode } from '../../ui.ts'
import { LongText } from '../long-text.ts'
import { FilePath } from './file-path.ts'
import { rowsOf } from './results.ts'
import { RowsTable } from './rows.ts'

type Props = {
  values: Record<string, unknown>
  label: string
  /** Session whose files the values name. */
  sessionId?: string | undefined
}

/** Values that are shown one by one; the others follow as JSON. */
const MAX_VALUES = 50
/** Longest text that stands beside its name. */
const SHORT_CHARACTERS = 200

/** Values by their names: lists of objects as tables, other nested ones as JSON. */
export function Values({ values, label, sessionId }: Props): VNode {
  const entries = Object.entries(values)
  const others = entries.slice(MAX_VALUES)
  return html`<div role="group" aria-label=${label}><dl class="values">${entries
    .slice(0, MAX_VALUES)
    .map(([name, value]) => {
      const shown = name.slice(0, SHORT_CHARACTERS).toWellFormed()
      return html`<div key=${name}><dt dir="auto">${shown}</dt><dd>${
        linkOf(values, name, sessionId) ?? html`<${Value} value=${value} label=${shown} />`
      }</dd></div>`
    })}</dl>${others.length > 0 && html`<${LongText} text=${JSON.stringify(Object.fromEntries(others), null, 2)} label="Others" />`}</div>`
}

/** Returns a link for a value that names a place: a file, or the session or turn of an agent that was asked. */
function linkOf(values: Props['values'], name: string, sessionId: string | undefined): VNode | undefined {
  const { path, session_id, turn_id } = values
  if (name === 'path' && typeof path === 'string') return html`<${FilePath} path=${path} sessionId=${sessionId} />`
  if (typeof session_id !== 'string' || !/^session_[0-9a-f]{32}$/.test(session_id)) return undefined
  if (name === 'session_id') return html`<a href=${link('sessions', session_id)}>Conversation</a>`
  if (name === 'turn_id' && typeof turn_id === 'string')
    return html`<a href=${link('sessions', session_id, 'turns', turn_id)}>Timeline</a>`
  return undefined
}

/** One value: a short one in its line, a long text as it is. */
function Value({ value, label }: { value: unknown; label: string }): VNode {
  const text = useMemo(() => textOf(value), [value])
  const rows = useMemo(() => rowsOf(value), [value])
  if (rows !== undefined) return html`<${RowsTable} rows=${rows} label=${label} />`
  if (text === '' || text === '[]' || text === '{}') return html`<i class="quiet">empty</i>`
  const isShort = text.length <= SHORT_CHARACTERS && !text.includes('\n')
  if (isShort) return html`<span class=${typeof value === 'string' ? '' : 'literal'} dir="auto">${text}</span>`
  return html`<${LongText} text=${text} label=${label} />`
}

/** Returns a value as text: a short one as JSON in one line. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  const line = JSON.stringify(value) ?? ''
  return line.length <= SHORT_CHARACTERS ? line : JSON.stringify(value, null, 2)
}
