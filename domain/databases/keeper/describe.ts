import type { DatabaseSync } from 'node:sqlite'
import type { Column, Description, Table } from './keeper.ts'
import { errcodeOf, jsonBytes, MAX_JSON_BYTES } from './rows.ts'

/** Tables that hold the data of virtual tables are of the type `shadow`. */
const TABLES = `SELECT name, type FROM pragma_table_list
  WHERE schema = 'main' AND type IN ('table', 'virtual', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name`
/** `hidden` are columns that virtual tables have for their own use; those that are generated have other numbers. */
const COLUMNS = 'SELECT name, type, "notnull", pk, dflt_value FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid'
/** Error of SQL: a table that cannot be used, as a view of what no longer exists. */
const SQLITE_ERROR = 1

export function describe(db: DatabaseSync): Description {
  const tables: Table[] = []
  let bytes = 0
  for (const { name, type } of db.prepare(TABLES).all()) {
    const table = describeTable(db, String(name), type === 'view')
    bytes += jsonBytes(table) + 1
    if (bytes > MAX_JSON_BYTES) return { tables, truncated: true }
    tables.push(table)
  }
  return { tables, truncated: false }
}

function describeTable(db: DatabaseSync, name: string, isView: boolean): Table {
  const columns = tryTo(() => db.prepare(COLUMNS).all(name))?.map(toColumn) ?? []
  const quoted = `"${name.replaceAll('"', '""')}"`
  // Counting the rows of a view can take any time.
  const counted = isView ? undefined : tryTo(() => db.prepare(`SELECT count(*) AS n FROM main.${quoted}`).get())
  return { name, columns, row_count: counted === undefined ? null : Number(counted.n) }
}

const toColumn = ({ name, type, notnull, pk, dflt_value }: Record<string, unknown>): Column => ({
  name: String(name),
  type: String(type),
  notnull: notnull === 1,
  pk: pk !== 0,
  default_value: dflt_value === null ? null : String(dflt_value),
})

function tryTo<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (errcodeOf(error) === SQLITE_ERROR) return undefined
    throw error
  }
}
