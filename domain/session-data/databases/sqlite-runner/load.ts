import { DatabaseSync } from 'node:sqlite'
import { authorize } from './authorizer.ts'
import { MAX_VALUE_BYTES, type Open } from './open.ts'
import { SqlProblem } from './rows.ts'
import { PAGE_BYTES } from './sqlite-runner.ts'

/** Value of auto_vacuum for a database that frees its pages with each commit, which the record does not support. */
const AUTO_VACUUM_FULL = 1

/** Converts a database file to the record's pages. Runs only SQL of the SQLite runner. */
export function convertFile(path: string): void {
  // VACUUM attaches the new database to the old one.
  const db = new DatabaseSync(path, { limits: { length: MAX_VALUE_BYTES, attach: 1 }, defensive: true })
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA trusted_schema = OFF')
    const { page_size } = db.prepare('PRAGMA page_size').get() ?? {}
    const { auto_vacuum } = db.prepare('PRAGMA auto_vacuum').get() ?? {}
    if (page_size === PAGE_BYTES && auto_vacuum !== AUTO_VACUUM_FULL) return
    db.exec('PRAGMA temp_store = MEMORY; PRAGMA journal_mode = DELETE')
    db.exec(`PRAGMA auto_vacuum = NONE; PRAGMA page_size = ${PAGE_BYTES}; VACUUM`)
  } finally {
    db.close()
  }
}

/** Throws SqlProblem for a damaged database, and for a schema that SQL could not have made here. */
export function checkFile({ db }: Open): undefined {
  // SQLite reads a schema without calling the authorizer. Triggers are compiled with the statements that fire them.
  const scratch = new DatabaseSync(':memory:')
  const authorizer = authorize(scratch)
  for (const { sql } of db.prepare('SELECT sql FROM main.sqlite_schema WHERE sql IS NOT NULL').all()) {
    const refusal = refusalOf(() => scratch.prepare(String(sql)), authorizer.takeRefusal)
    if (refusal !== undefined) throw new SqlProblem(refusal)
  }
  scratch.close()
  const { quick_check } = db.prepare('PRAGMA quick_check(1)').get() ?? {}
  if (quick_check !== 'ok') throw new SqlProblem(String(quick_check))
}

/** Compiling may also fail because a statement refers to something that does not exist. */
function refusalOf(compile: () => unknown, takeRefusal: () => string | undefined): string | undefined {
  try {
    compile()
  } catch {}
  return takeRefusal()
}
