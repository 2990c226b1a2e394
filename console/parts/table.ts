import { type ComponentChildren, html, type VNode } from '../ui.ts'
import { Quiet } from './page.ts'
import { Skeleton } from './skeleton.ts'

export type Column<T> = {
  title: string
  cell(item: T): ComponentChildren
  /** Whether the column holds numbers, which are aligned by their digits. */
  isNumber?: boolean
  /** Whether the column is left out where it has no room: below 1100 px. */
  isMinor?: boolean
}

type Props<T> = {
  /** Undefined while they are loading. */
  items: T[] | undefined
  keyOf(item: T): string
  /** The first column names the item. */
  columns: Column<T>[]
  actions?: (item: T) => ComponentChildren
  /** Sentence or section that stands for an empty table. */
  none: ComponentChildren
}

const classOf = <T>({ isNumber, isMinor }: Column<T>): string =>
  `${isNumber ? 'number' : ''} ${isMinor ? 'minor' : ''}`.trim()

/** Table, which becomes a list of cards on a narrow page. */
export function Table<T>({ items, keyOf, columns, actions, none }: Props<T>): VNode | null {
  if (items === undefined) return html`<${Skeleton} />`
  if (items.length === 0) return typeof none === 'string' ? html`<${Quiet}>${none}<//>` : html`${none}`
  const [name, ...others] = columns
  const row = (item: T) => html`<tr key=${keyOf(item)}>
    <th scope="row" dir="auto">${name?.cell(item)}</th>
    ${others.map((column) => html`<td key=${column.title} class=${classOf(column)} data-title=${column.title}>${column.cell(item)}</td>`)}
    ${actions && html`<td class="row-actions"><div class="actions">${actions(item)}</div></td>`}
  </tr>`
  return html`<table>
    <thead><tr>${columns.map((column) => html`<th key=${column.title} scope="col" class=${classOf(column)}>${column.title}</th>`)}
      ${actions && html`<th scope="col"><span class="unseen">Actions</span></th>`}</tr></thead>
    <tbody>${items.map(row)}</tbody>
  </table>`
}
