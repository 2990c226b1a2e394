import { html, useState, type VNode } from '../../ui.ts'
import { FilePath } from './file-path.ts'
import type { Rows } from './results.ts'

const SHOWN_ROWS = 20
const CELL_CHARACTERS = 500

type Props = { rows: Rows; label: string; sessionId?: string | undefined }

/** Table of rows; at first not all. */
export function RowsTable({ rows: { columns, rows }, label, sessionId }: Props): VNode {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? rows : rows.slice(0, SHOWN_ROWS)
  if (columns.length === 0) return html`<p class="quiet">No rows.</p>`
  return html`<div class="wide rows-box" tabindex="0" role="group" aria-label=${label}><table class="rows">
      <thead><tr>${columns.map((column, index) => html`<th key=${index} scope="col" dir="auto">${clipped(column)}</th>`)}</tr></thead>
      <tbody>${shown.map(
        (row, index) =>
          html`<tr key=${index}>${columns.map(
            (column, place) =>
              html`<td key=${place} dir="auto"><${Cell} value=${row[place]} sessionId=${column === 'path' ? sessionId : undefined} /></td>`,
          )}</tr>`,
      )}</tbody>
    </table></div>
    ${rows.length === 0 && html`<p class="quiet">No rows.</p>`}
    ${
      rows.length > SHOWN_ROWS &&
      html`<button type="button" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>
        ${isWhole ? 'Show less' : `Show all ${rows.length.toLocaleString()} rows`}</button>`
    }`
}

function Cell({ value, sessionId }: { value: unknown; sessionId: string | undefined }): VNode | string | null {
  if (value === undefined) return null
  if (value === null) return html`<i class="quiet">NULL</i>`
  if (sessionId !== undefined && typeof value === 'string')
    return html`<${FilePath} path=${value} sessionId=${sessionId} />`
  return clipped(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
}

const clipped = (text: string): string =>
  text.length <= CELL_CHARACTERS ? text : `${text.slice(0, CELL_CHARACTERS).toWellFormed()}…`
