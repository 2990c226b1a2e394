import type { DatabaseSync } from 'node:sqlite'
import { errcodeOf, jsonBytes, MAX_JSON_BYTES } from './rows.ts'
import type { Column, Description, Table } from './sqlite-runner.ts'

/** Tables with the data of virtual tables have the type `shadow` instead. */
const DESCRIBED: unknown[] = ['table', 'virtual', 'view']
/** Column that a virtual table has for its own use; generated columns have other numbers. */
const HIDDEN = 1
/** SQLite's code for an unusable table, such as a view of a table that no longer exists. */
const SQLITE_ERROR = 1

export function describe(db: DatabaseSync): Description {
  const tables: Table[] = []
  let bytes = 0
  for (const { name, type } of listTables(db)) {
    const table = describeTable(db, name, type === 'view')
    bytes += jsonBytes(table) + 1
    if (bytes > MAX_JSON_BYTES) return { tables, truncated: true }
    tables.push(table)
  }
  return { tables, truncated: false }
}

/**
 * Uses PRAGMA statements, because a user can create a table with the name of a PRAGMA's function, such as
 * pragma_table_list.
 */
function listTables(db: DatabaseSync): { name: string; type: unknown }[] {
  const all = db
    .prepare('PRAGMA main.table_list')
    .all()
    .map(({ name, type }) => ({ name: String(name), type }))
  const made = all.filter(({ name, type }) => DESCRIBED.includes(type) && !/^sqlite_/i.test(name))
  return made.sort((one, other) => (one.name < other.name ? -1 : 1))
}

function describeTable(db: DatabaseSync, name: string, isView: boolean): Table {
  const quoted = `"${name.replaceAll('"', '""')}"`
  const listed = tryTo(() => db.prepare(`PRAGMA main.table_xinfo(${quoted})`).all()) ?? []
  const columns = listed.filter(({ hidden }) => hidden !== HIDDEN).map(toColumn)
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
