import type { DatabaseInfoResponse, DatabaseRows, DatabaseTable } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { RowsTable } from '../../parts/call/rows.ts'
import { Form } from '../../parts/form.ts'
import { Menu, type MenuItem } from '../../parts/menu.ts'
import { ActionButton, Problem, Quiet } from '../../parts/page.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useRef, useState, type VNode } from '../../ui.ts'
import { sizeOf } from './files.ts'

type Props = { sessionId: string }

/** Databases of a session, at `#/sessions/<id>/databases/<name>`. */
export function Databases({ sessionId }: Props): VNode {
  const [name] = route.value.path.slice(3)
  if (name !== undefined) return html`<${Database} key=${name} sessionId=${sessionId} name=${name} />`
  return html`<${List} sessionId=${sessionId} />`
}

function List({ sessionId }: Props): VNode {
  const session = { session_id: sessionId }
  const { value, error, reload } = useLoad(async () => (await api.databases.list(session)).data, [sessionId])
  const remove = (name: string) => async () => {
    await api.databases.delete({ ...session, name })
    reload()
  }
  const columns: Column<DatabaseInfoResponse>[] = [
    { title: 'Name', cell: ({ name }) => html`<a href=${link('sessions', sessionId, 'databases', name)}>${name}</a>` },
    { title: 'Size', cell: ({ size_bytes }) => sizeOf(size_bytes) },
    { title: 'Changed', cell: ({ updated_at }) => html`<${Time} at=${updated_at} />` },
  ]
  const items = (name: string): MenuItem[] => [
    {
      label: 'Delete',
      icon: 'trash',
      isDangerous: true,
      question: `Delete the database “${name}”?`,
      run: remove(name),
    },
  ]
  const actions = ({ name }: DatabaseInfoResponse) =>
    html`<${Menu} label=${`Actions for ${name}`} items=${items(name)} />`
  return html`<section>
    <${Problem} error=${error} />
    <${Table} items=${value} keyOf=${nameOf} columns=${columns} actions=${actions}
      none="No databases yet: an agent makes them with sql_execute." />
  </section>`
}

const nameOf = ({ name }: { name: string }): string => name

function Database({ sessionId, name }: Props & { name: string }): VNode {
  const path = { session_id: sessionId, name }
  const schema = useLoad(() => api.databases.getDatabaseSchema(path), [name])
  const [rows, setRows] = useState<DatabaseRows | undefined>(undefined)
  /** Initial text of the form. */
  const [given, setGiven] = useState('')
  const latest = useRef(0)
  const query = async (sql: string) => {
    const number = ++latest.current
    setRows(undefined)
    const found = await api.databases.query({ ...path, sql })
    // Answers may arrive out of order.
    if (number === latest.current) setRows(found)
  }
  const showRows = (table: string) => {
    const sql = `SELECT * FROM "${table.replaceAll('"', '""')}" LIMIT 100`
    setGiven(sql)
    return query(sql)
  }
  const columns: Column<DatabaseTable>[] = [
    { title: 'Table', cell: nameOf },
    {
      title: 'Columns',
      cell: (table) =>
        table.columns.map(({ name, type, pk }) => `${name} ${type}${pk ? ' (primary key)' : ''}`).join(', '),
    },
    { title: 'Rows', cell: ({ row_count }) => row_count?.toLocaleString() },
  ]
  const actions = (table: DatabaseTable) => html`<${ActionButton} run=${() => showRows(table.name)}>Show rows<//>`
  return html`<section>
    <p><a href=${link('sessions', sessionId, 'databases')}>Databases</a> / ${name}</p>
    <${Problem} error=${schema.error} />
    <${Table} items=${schema.value?.tables} keyOf=${nameOf} columns=${columns} actions=${actions} none="It has no tables yet." />
    ${schema.value?.truncated && html`<${Quiet}>More tables were left out.<//>`}
    <h2>Query</h2>
    <${Form} key=${given} fields=${[{ name: 'sql', label: 'SQL', kind: 'longtext', isRequired: true, hint: 'A single read-only statement.' }]}
      values=${{ sql: given }} action="Run" isFleeting onSubmit=${(values: Record<string, unknown>) => query(String(values.sql))} />
    ${rows && html`<${Rows} rows=${rows} />`}
  </section>`
}

function Rows({ rows: { columns, rows, row_count, truncated } }: { rows: DatabaseRows }): VNode {
  return html`<p role="status">${row_count.toLocaleString()} ${row_count === 1 ? 'row' : 'rows'}${truncated ? ', and more that were left out' : ''}</p>
    <${RowsTable} rows=${{ columns, rows }} label="Rows" />`
}
