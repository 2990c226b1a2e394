import type { Claim } from '../../../../lib/fair-queue.ts'

/** Bytes of each page of a database. */
export const PAGE_BYTES = 4096
/** Maximum number of pages of a database: 50 MiB. */
export const MAX_PAGES = 12_800

/** Source of a database's pages in the record. */
export type PageSource = {
  /** Id of the database, never reused. */
  id: string
  /**
   * Reads the state now, and the pages that changed after version `since` (all of them for 0). Version 0 has no pages.
   * Undefined when the database is gone. Pages beyond `pageCount` are ignored. Not every number has a page: SQLite does
   * not write a page that one transaction has both added and freed. Read `pages` at most once, without delay.
   */
  read(since: number): Promise<State | undefined>
}
export type State = { version: number; pageCount: number; pages: AsyncIterable<PageBatch> }
/** `bytes` are consecutive pages of PAGE_BYTES, whose page numbers (from 1) are in `numbers`. */
export type PageBatch = { numbers: number[]; bytes: Uint8Array }
/** All pages of a database. */
export type Pages = PageBatch & { pageCount: number }
/** Pages that a script has changed in the state `version`, in ascending order; empty if it only read. */
export type Changes = PageBatch & { version: number; pageCount: number }

export type Param = null | boolean | number | string
export type Statement = { sql: string; params?: Param[] }
/** A value in JSON: blobs are base64, and integers beyond 2^53 and infinities are strings. */
export type Value = null | number | string
/** At most 1,000 rows and 1 MB of JSON; `truncated` when there are more. Columns may have the same name. */
export type Rows = { columns: string[]; rows: Value[][]; truncated: boolean }
export type QueryResult = Rows & { row_count: number }
/** Has the rows of the last statement that returns rows, if there is one. */
export type ExecuteResult = { rows_affected: number; last_insert_rowid?: number | string } & Partial<Rows>
export type Column = { name: string; type: string; notnull: boolean; pk: boolean; default_value: string | null }
/** `row_count` is null for a view, and for a table whose rows cannot be counted. */
export type Table = { name: string; columns: Column[]; row_count: number | null }
/** Users' tables and views, by name, at most 1 MB of JSON; `truncated` when there are more. */
export type Description = { tables: Table[]; truncated: boolean }

/**
 * Reason for which there is no result; nothing was changed.
 * - `sql_error`: the SQL is wrong, refused or over a limit.
 * - `late`: it took 30 seconds and was stopped.
 * - `out_of_memory`: it needed too much memory and was stopped.
 * - `damaged`: the pages in the record are not a database.
 * - `busy`: no process was free in time, or too many calls wait for this database.
 * - `conflict`: others stored changes first, again and again.
 * - `gone`: the database was deleted.
 */
export type FailureKind = 'sql_error' | 'late' | 'out_of_memory' | 'damaged' | 'busy' | 'conflict' | 'gone'
/** `message` is a sentence for the one who wrote the SQL, without a full stop at its end. */
export type Failure = { outcome: FailureKind; message: string }
export type Ran<Result> = { outcome: 'done'; result: Result } | Failure

/**
 * Records changes and the result, for a repeated call, in one transaction, if the database still has `changes.version`,
 * and makes that `changes.version + 1`. With no changed pages, only the result has to be recorded, and the version stays.
 * `conflict`: it has another version; the script is run again on that one. `gone`: the database was deleted.
 * When it throws, the call rejects with the error, and whether the changes were stored is looked up before the next call.
 */
export type Store = (changes: Changes, result: ExecuteResult) => Promise<'stored' | 'conflict' | 'gone'>

/**
 * Runs SQL on databases, each on a copy in a file. A database has one call at a time; others wait. All calls reject with
 * the reason of `signal` when it aborts, and with the errors of `source` and `store`.
 */
export type SqliteRunner = {
  /** Runs one statement that only reads. */
  query(source: PageSource, statement: Statement, claim: Claim, signal: AbortSignal): Promise<Ran<QueryResult>>
  describe(source: PageSource, claim: Claim, signal: AbortSignal): Promise<Ran<Description>>
  /** Runs a script as one transaction. Params are for a single statement. */
  execute(
    source: PageSource,
    script: Statement,
    store: Store,
    claim: Claim,
    signal: AbortSignal,
  ): Promise<Ran<ExecuteResult>>
  /**
   * Checks that bytes are a SQLite file, and stores its pages. Pages of another size are converted. `damaged` if they are
   * not a database, or if the database could do what SQL may not.
   */
  load<Result>(
    bytes: AsyncIterable<Uint8Array>,
    store: (pages: Pages) => Promise<Result>,
    claim: Claim,
    signal: AbortSignal,
  ): Promise<Ran<Result>>
  /** Removes the copy of a deleted database. */
  forget(id: string): void
  /** Ends the processes and removes the copies. Calls that are under way reject. */
  close(): Promise<void>
}
