import type { Given } from './shapes.ts'

/** Rows of a table, by its columns. */
export type Rows = { columns: string[]; rows: unknown[][] }

/** Result of a call as people read it. `others` are the fields that the kind does not show. */
export type Result =
  | { kind: 'nothing' }
  | { kind: 'text'; text: string }
  /** Output of a command. */
  | { kind: 'command'; exitCode: number; stdout: string; stderr: string; others: Given }
  /** Part of a file, from its line `first`. */
  | { kind: 'file'; path: string | undefined; text: string; first: number; others: Given }
  | { kind: 'rows'; rows: Rows; others: Given }
  | { kind: 'values'; values: Given }
  | { kind: 'json'; value: unknown }

const MAX_COLUMNS = 12
const MAX_ROWS = 1000

/**
 * Returns how to show a result, which is told by the names of its fields. Fields that repeat arguments of the call are left
 * out.
 */
export function resultOf(result: unknown, given: Given = {}): Result {
  const value = isRecord(result) ? withoutRepeated(result, given) : result
  if (value === undefined || value === null || value === '') return { kind: 'nothing' }
  if (typeof value === 'string') return { kind: 'text', text: value }
  if (!isRecord(value)) {
    const rows = rowsOf(value)
    return rows === undefined ? { kind: 'json', value } : { kind: 'rows', rows, others: {} }
  }
  const { exit_code, stdout, stderr } = value
  if (typeof exit_code === 'number' && typeof stdout === 'string') {
    const { exit_code: _code, stdout: _out, stderr: _err, ...others } = value
    return { kind: 'command', exitCode: exit_code, stdout, stderr: typeof stderr === 'string' ? stderr : '', others }
  }
  const shown = fileOf(value) ?? databaseRowsOf(value) ?? listOf(value)
  return shown ?? (Object.keys(value).length === 0 ? { kind: 'nothing' } : { kind: 'values', values: value })
}

const withoutRepeated = (result: Given, given: Given): Given =>
  Object.fromEntries(Object.entries(result).filter(([name, value]) => !(name in given) || !isSame(value, given[name])))

const isSame = (one: unknown, other: unknown): boolean =>
  one === other || (typeof one === 'object' && JSON.stringify(one) === JSON.stringify(other))

/** Returns the exit code of a command's result, and undefined for other results. */
export function exitCodeOf(text: string): number | undefined {
  const [, code] = /^\s*\{\s*"exit_code":\s*(-?\d+)/.exec(text) ?? []
  return code === undefined ? undefined : Number(code)
}

/** Parses a result, which is JSON unless a tool returned a text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export const isRecord = (value: unknown): value is Given =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function fileOf({ path, content, first_line, ...rest }: Given): Result | undefined {
  if (rest.encoding !== 'text' || typeof content !== 'string') return undefined
  const { encoding: _text, next_offset, ...others } = rest
  const more = next_offset === null || next_offset === undefined ? {} : { next_offset }
  return {
    kind: 'file',
    path: typeof path === 'string' ? path : undefined,
    text: content,
    first: typeof first_line === 'number' ? first_line : 1,
    others: { ...others, ...more },
  }
}

function databaseRowsOf({ columns, rows, ...rest }: Given): Result | undefined {
  if (!Array.isArray(columns) || !columns.every((name) => typeof name === 'string')) return undefined
  if (!Array.isArray(rows) || !rows.every(Array.isArray)) return undefined
  const { row_count: _count, truncated, ...others } = rest
  return {
    kind: 'rows',
    rows: { columns, rows: rows.slice(0, MAX_ROWS) },
    others: { ...others, ...(truncated === true ? { truncated } : {}) },
  }
}

/** Returns the only list of a result as rows. */
function listOf(value: Given): Result | undefined {
  const lists = Object.entries(value).flatMap(([name, item]) => {
    const rows = rowsOf(item)
    return rows === undefined ? [] : [{ name, rows }]
  })
  const [list] = lists
  if (lists.length !== 1 || list === undefined) return undefined
  const others = Object.entries(value).filter(([name, item]) => name !== list.name && item !== null)
  return { kind: 'rows', rows: list.rows, others: Object.fromEntries(others) }
}

/** Returns a list of objects as the rows of a table, if they have few fields and all are plain values. */
export function rowsOf(list: unknown): Rows | undefined {
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_ROWS || !list.every(isRecord)) return undefined
  const columns = [...new Set(list.flatMap((item) => Object.keys(item).slice(0, MAX_COLUMNS + 1)))]
  if (columns.length === 0 || columns.length > MAX_COLUMNS) return undefined
  return { columns, rows: list.map((item) => columns.map((column) => item[column])) }
}
