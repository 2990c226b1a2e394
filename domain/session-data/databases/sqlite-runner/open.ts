import { DatabaseSync } from 'node:sqlite'
import { type Authorizer, authorize } from './authorizer.ts'
import { MAX_PAGES, PAGE_BYTES } from './sqlite-runner.ts'

/** Maximum bytes of a value, and of a row. */
export const MAX_VALUE_BYTES = 20_000_000
export const MAX_SQL_BYTES = 1_000_000

export type Open = { db: DatabaseSync; authorizer: Authorizer }

/**
 * Opens a file's database, or creates it in an empty file. Closing it moves committed changes into the file; until
 * then, only the WAL has them.
 */
export function openDatabase(path: string): Open {
  const db = new DatabaseSync(path, {
    limits: { length: MAX_VALUE_BYTES, sqlLength: MAX_SQL_BYTES, attach: 0 },
    defensive: true,
    enableForeignKeyConstraints: true,
  })
  try {
    // Only this process has the file open, and the file is not used again after a crash of the machine.
    db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA page_size = ${PAGE_BYTES}`)
    // Set while the database is still empty, so that the first page has it from the first version on.
    const { journal_mode } = db.prepare('PRAGMA journal_mode = WAL').get() ?? {}
    if (journal_mode !== 'wal') throw new Error(`The journal mode is ${journal_mode}.`)
    db.exec('PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF')
    db.exec(`PRAGMA cell_size_check = ON; PRAGMA max_page_count = ${MAX_PAGES}`)
    return { db, authorizer: authorize(db) }
  } catch (error) {
    db.close()
    throw error
  }
}
