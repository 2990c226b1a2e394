import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Number of characters first tried as the next statement. */
const FIRST_TRIED = 16 * 1024

/**
 * Prepares the statements of a script one after the other, on demand: a statement may need the previous ones' tables.
 * `sql` must be well-formed.
 */
export function* prepareEach(db: DatabaseSync, sql: string): Generator<StatementSync> {
  for (let at = 0; at < sql.length; ) {
    const statement = prepareNext(db, sql, at)
    if (statement === undefined) return
    at += statement.sourceSQL.length
    yield statement
  }
}

/**
 * Prepares the statement that begins at `at`. Undefined when only white space and comments are left. Preparing copies
 * its whole text, so it gets little text at first: otherwise each statement would copy the whole script.
 */
function prepareNext(db: DatabaseSync, sql: string, at: number): StatementSync | undefined {
  for (let tried = FIRST_TRIED; ; tried *= 8) {
    const isRest = at + tried >= sql.length
    try {
      const statement = db.prepare(sql.slice(at, at + tried))
      // SQLite stopped at a semicolon. If it had read the whole text, the statement might continue.
      if (isRest || statement.sourceSQL.length < tried) return statement
    } catch (error) {
      if (!isRest) continue
      if (hasNoStatement(error)) return undefined
      throw error
    }
  }
}

const hasNoStatement = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_INVALID_ARG_VALUE'
