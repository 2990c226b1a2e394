import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Characters that are first tried as the next statement. */
const FIRST_TRIED = 16 * 1024

/**
 * Prepares the statements of a script one after the other, each when it is needed: it may need what those before it have
 * made. `sql` has to be well-formed.
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
 * Prepares the statement that begins at `at`. Undefined when only white space and comments are left. Preparing copies the
 * whole text that it is given, so it is given little at first: a long script would be copied for each of its statements.
 */
function prepareNext(db: DatabaseSync, sql: string, at: number): StatementSync | undefined {
  for (let tried = FIRST_TRIED; ; tried *= 8) {
    const isRest = at + tried >= sql.length
    try {
      const statement = db.prepare(sql.slice(at, at + tried))
      // SQLite has stopped by itself at a semicolon. Had it read all that it was given, the statement might go on.
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
