import type { SQLOutputValue, StatementSync } from 'node:sqlite'
import type { Param, Rows, Value } from './sqlite-runner.ts'

export const MAX_ROWS = 1000
export const MAX_JSON_BYTES = 1_000_000

/** Error with a message for the author of the SQL. */
export class SqlProblem extends Error {
  override name = 'SqlProblem'
}

/** Runs a statement and reads its rows, up to the limits. `isReadToEnd`: steps through the other rows, too. */
export function readRows(statement: StatementSync, params: Param[], { isReadToEnd = false } = {}): Rows {
  const columns = statement.columns().map(({ name }) => name)
  let bytes = jsonBytes(columns)
  if (bytes > MAX_JSON_BYTES) throw new SqlProblem('The names of the columns are longer than 1 MB')
  statement.setReturnArrays(true)
  statement.setReadBigInts(true)
  const rows: Value[][] = []
  let truncated = false
  for (const row of iterate(statement, params)) {
    if (truncated) continue
    const values = row.map(toValue)
    bytes += jsonBytes(values) + 1
    truncated = rows.length === MAX_ROWS || bytes > MAX_JSON_BYTES
    if (!truncated) rows.push(values)
    else if (!isReadToEnd) break
  }
  return { columns, rows, truncated }
}

/** Checks the number of params, because SQLite would use NULL for missing ones. */
function iterate(statement: StatementSync, params: Param[]): Iterable<SQLOutputValue[]> {
  const values = params.map(toBound)
  if (canBind(statement, [...values, null])) {
    throw new SqlProblem(`The SQL has more placeholders than there are params (${params.length})`)
  }
  if (params.length > 0 && !canBind(statement, values)) {
    throw new SqlProblem(`There are more params (${params.length}) than placeholders in the SQL, which must be ? or ?1`)
  }
  // A named placeholder is only recognizable by its NULL where nothing was bound.
  if (params.length === 0 && statement.expandedSQL !== statement.sourceSQL) {
    throw new SqlProblem('Placeholders must be ? or ?1, with a param for each; named ones are not available')
  }
  // Rows are arrays by setReturnArrays, which the type does not say.
  return statement.iterate(...values) as Iterable<unknown> as Iterable<SQLOutputValue[]>
}

function canBind(statement: StatementSync, values: ReturnType<typeof toBound>[]): boolean {
  try {
    statement.iterate(...values)
    return true
  } catch (error) {
    if (errcodeOf(error) === SQLITE_RANGE) return false
    throw error
  }
}

const SQLITE_RANGE = 25

/** Returns SQLite's extended code of an error, if it is SQLite's. */
export function errcodeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined
}

function toBound(param: Param): null | bigint | number | string {
  if (typeof param === 'boolean') return param ? 1n : 0n
  // A number is bound as REAL, which a column without a type would keep.
  return typeof param === 'number' && Number.isSafeInteger(param) ? BigInt(param) : param
}

export function toValue(value: SQLOutputValue): Value {
  if (typeof value === 'bigint') return toInteger(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length).toString('base64')
  return value
}

export const toInteger = (value: bigint): number | string =>
  Number.isSafeInteger(Number(value)) ? Number(value) : String(value)

export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
