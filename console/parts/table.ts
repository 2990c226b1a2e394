import { type ComponentChildren, html, type VNode } from '../ui.ts'
import { Quiet } from './page.ts'

export type Column<T> = { title: string; cell(item: T): ComponentChildren }

type Props<T> = {
  /** Undefined while they are loading. */
  items: T[] | undefined
  keyOf(item: T): string
  /** The first column names the item. */
  columns: Column<T>[]
  actions?: (item: T) => ComponentChildren
  /** Sentence that stands for an empty table. */
  none: string
}

/** Table, which becomes a list of cards on a narrow page. */
export function Table<T>({ items, keyOf, columns, actions, none }: Props<T>): VNode | null {
  if (items === undefined) return null
  if (items.length === 0) return html`<${Quiet}>${none}<//>`
  const [name, ...others] = columns
  const row = (item: T) => html`<tr key=${keyOf(item)}>
    <th scope="row" dir="auto">${name?.cell(item)}</th>
    ${others.map(({ title, cell }) => html`<td data-title=${title}>${cell(item)}</td>`)}
    ${actions && html`<td><div class="actions">${actions(item)}</div></td>`}
  </tr>`
  return html`<table>
    <thead><tr>${columns.map(({ title }) => html`<th scope="col">${title}</th>`)}
      ${actions && html`<th scope="col"><span class="unseen">Actions</span></th>`}</tr></thead>
    <tbody>${items.map(row)}</tbody>
  </table>`
}
