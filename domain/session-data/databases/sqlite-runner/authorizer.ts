import { constants as codes, type DatabaseSync } from 'node:sqlite'

/**
 * Decides what SQL may do. SQLite calls it while it compiles a statement, including the statements that virtual tables
 * run.
 */
export type Authorizer = {
  /** Runs SQL of the SQLite runner itself, which may begin and end transactions, and set PRAGMAs. */
  runOwn(sql: string): void
  /** Returns why SQL was refused, and forgets it. SQLite itself only reports "not authorized". */
  takeRefusal(): string | undefined
  /**
   * Returns whether a statement that changes rows was compiled since the last call. CREATE, ALTER and DROP do not
   * count: SQLite does not count the rows that they change.
   */
  takeIsChanging(): boolean
}

/** PRAGMAs that describe the database or SQLite, without `database_list`, which would show the file's path. */
const PRAGMAS_WITHOUT_ARGUMENT = new Set([
  ...['application_id', 'auto_vacuum', 'collation_list', 'compile_options', 'data_version', 'encoding', 'foreign_keys'],
  ...['freelist_count', 'function_list', 'journal_mode', 'module_list', 'page_count', 'page_size', 'pragma_list'],
  ...['schema_version', 'user_version'],
])
/** PRAGMAs whose argument names the subject. */
const PRAGMAS_WITH_ARGUMENT = new Set([
  ...['foreign_key_check', 'foreign_key_list', 'index_info', 'index_list', 'index_xinfo', 'integrity_check'],
  ...['quick_check', 'table_info', 'table_list', 'table_xinfo'],
])
const MODULES = ['fts5', 'fts5vocab', 'fts4', 'fts4aux', 'fts3', 'rtree', 'rtree_i32', 'geopoly']
const FUNCTIONS_REFUSED = ['load_extension', 'fts3_tokenizer']

const CHANGING_ROWS = new Set([codes.SQLITE_INSERT, codes.SQLITE_UPDATE, codes.SQLITE_DELETE])
const OWN = new Set([codes.SQLITE_TRANSACTION, codes.SQLITE_PRAGMA])
/** Actions on whole tables, indexes, triggers and views. */
const OF_SCHEMA = new Set([
  ...[codes.SQLITE_DROP_INDEX, codes.SQLITE_DROP_TABLE, codes.SQLITE_DROP_TRIGGER, codes.SQLITE_DROP_VIEW],
  ...[codes.SQLITE_DROP_VTABLE, codes.SQLITE_ALTER_TABLE, codes.SQLITE_REINDEX, codes.SQLITE_ANALYZE],
])
/** Actions that reach only the database. */
const ALLOWED = new Set([
  ...[codes.SQLITE_SELECT, codes.SQLITE_READ, codes.SQLITE_RECURSIVE],
  ...[...CHANGING_ROWS, ...OF_SCHEMA, codes.SQLITE_SAVEPOINT],
])
/** Actions that create something, which must be in the database. */
const CREATING = new Set([
  ...[codes.SQLITE_CREATE_INDEX, codes.SQLITE_CREATE_TABLE, codes.SQLITE_CREATE_TRIGGER, codes.SQLITE_CREATE_VIEW],
  codes.SQLITE_CREATE_VTABLE,
])
const CREATING_TEMPORARY = new Set([
  ...[codes.SQLITE_CREATE_TEMP_INDEX, codes.SQLITE_CREATE_TEMP_TABLE],
  ...[codes.SQLITE_CREATE_TEMP_TRIGGER, codes.SQLITE_CREATE_TEMP_VIEW],
])

export function authorize(db: DatabaseSync): Authorizer {
  let isOwn = false
  let refusal: string | undefined
  let [isChanging, isOfSchema] = [false, false]
  db.setAuthorizer((code, name, argument, schema) => {
    const problem = isOwn && OWN.has(code) ? undefined : problemOf(code, name, argument, schema)
    refusal ??= problem
    isChanging ||= CHANGING_ROWS.has(code)
    isOfSchema ||= CREATING.has(code) || OF_SCHEMA.has(code)
    return problem === undefined ? codes.SQLITE_OK : codes.SQLITE_DENY
  })
  return {
    runOwn: (sql) => {
      isOwn = true
      try {
        db.exec(sql)
      } finally {
        isOwn = false
      }
    },
    takeRefusal: () => {
      const taken = refusal
      refusal = undefined
      return taken
    },
    takeIsChanging: () => {
      const taken = isChanging && !isOfSchema
      isChanging = false
      isOfSchema = false
      return taken
    },
  }
}

/** Returns why an action is refused. Unknown actions are refused. */
function problemOf(code: number, name: string | null, argument: string | null, schema: string | null) {
  if (ALLOWED.has(code)) return undefined
  if (CREATING_TEMPORARY.has(code) || (CREATING.has(code) && schema !== 'main')) {
    return 'Temporary tables, views and triggers are not available: make an ordinary one, and drop it at the end'
  }
  if (code === codes.SQLITE_CREATE_VTABLE) return problemOfModule(argument ?? '')
  if (CREATING.has(code)) return undefined
  if (code === codes.SQLITE_FUNCTION) return problemOfFunction(argument ?? '')
  if (code === codes.SQLITE_PRAGMA) return problemOfPragma(name ?? '', argument)
  if (code === codes.SQLITE_TRANSACTION) {
    return `${name ?? 'BEGIN'} is not available: each call is one transaction that is kept as a whole or not at all. SAVEPOINT can be used within it`
  }
  if (code === codes.SQLITE_ATTACH) return 'ATTACH is not available: SQL reaches only its own database'
  if (code === codes.SQLITE_DETACH) return 'DETACH is not available: SQL reaches only its own database'
  return 'This statement is not available'
}

function problemOfModule(module: string): string | undefined {
  if (MODULES.includes(module.toLowerCase())) return undefined
  return `Virtual tables that use ${module} are not available, only tables that use ${MODULES.join(', ')}`
}

function problemOfFunction(name: string): string | undefined {
  return FUNCTIONS_REFUSED.includes(name.toLowerCase()) ? `The function ${name} is not available` : undefined
}

function problemOfPragma(name: string, argument: string | null): string | undefined {
  const pragma = name.toLowerCase()
  if (PRAGMAS_WITH_ARGUMENT.has(pragma)) return undefined
  if (!PRAGMAS_WITHOUT_ARGUMENT.has(pragma))
    return `PRAGMA ${name} is not available: only PRAGMAs that read the database are`
  return argument === null ? undefined : `PRAGMA ${name} can only be read, not set`
}
