import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { describe } from './describe.ts'
import type { Job, Reply } from './job.ts'
import { checkFile, convertFile } from './load.ts'
import { MAX_SQL_BYTES, type Open, openDatabase } from './open.ts'
import { readRows, SqlProblem, toInteger } from './rows.ts'
import { problemOf } from './sql-errors.ts'
import type { ExecuteResult, QueryResult, Rows } from './sqlite-runner.ts'
import { prepareEach } from './statements.ts'

/**
 * Runs a job and closes the database. After a finished execute, returns it open, with its changes committed to the WAL.
 * After a failed job it also stays open, because closing could have any effect.
 */
export function runJob(job: Job): { reply: Reply; open?: Open } {
  let open: Open | undefined
  try {
    if (job.do === 'load') convertFile(job.path)
    open = openDatabase(job.path)
    if (job.do === 'execute') return { reply: { outcome: 'done', result: execute(open, job) }, open }
    const reply: Reply = { outcome: 'done', result: job.do === 'load' ? checkFile(open) : readOnly(open, job) }
    open.db.close()
    return { reply }
  } catch (error) {
    const reply = problemOf(error, open?.authorizer.takeRefusal(), job.do === 'query' || job.do === 'describe')
    if (reply.outcome === 'failed' || open === undefined) return { reply, ...(open && { open }) }
    if (open.db.isTransaction) open.authorizer.runOwn('ROLLBACK')
    open.db.close()
    return { reply }
  }
}

function readOnly({ db, authorizer }: Open, job: Job) {
  // Applies to everything from here on, also to virtual tables' statements.
  authorizer.runOwn('PRAGMA query_only = ON')
  authorizer.runOwn('BEGIN')
  const result = job.do === 'query' ? query(db, job) : describe(db)
  authorizer.runOwn('ROLLBACK')
  return result
}

function query(db: DatabaseSync, job: Job): QueryResult {
  let rows: Rows | undefined
  for (const statement of prepareScript(db, job)) {
    if (rows !== undefined) throw new SqlProblem('A query is one statement; run several of them one after the other')
    rows = readRows(statement, job.params)
  }
  if (rows === undefined) throw new SqlProblem('The SQL has no statement')
  return { ...rows, row_count: rows.rows.length }
}

/** Prepares the statements of a job, each after the previous one has run. */
function prepareScript(db: DatabaseSync, { sql }: Job): Iterable<StatementSync> {
  if (Buffer.byteLength(sql) > MAX_SQL_BYTES) throw new SqlProblem('SQL may have at most 1 MB')
  // SQLite would treat it as the end.
  if (sql.includes('\0')) throw new SqlProblem('SQL cannot contain the character NUL')
  return prepareEach(db, sql.toWellFormed())
}

function execute({ db, authorizer }: Open, job: Job): ExecuteResult {
  authorizer.runOwn('BEGIN IMMEDIATE')
  const counters = db.prepare('SELECT changes() AS direct, last_insert_rowid() AS rowid')
  counters.setReadBigInts(true)
  let [number, affected, rowid] = [0, 0n, 0n]
  let rows: Rows | undefined
  for (const statement of prepareScript(db, job)) {
    number++
    if (number > 1 && job.params.length > 0) throw new SqlProblem('With params, the SQL must be a single statement')
    // SQLite checks foreign keys when a statement that changes rows ends.
    const isChanging = authorizer.takeIsChanging()
    const read = readRows(statement, job.params, { isReadToEnd: isChanging })
    if (read.columns.length > 0) rows = read
    if (isChanging) {
      const counted = count(counters)
      affected += counted.direct
      rowid = counted.rowid
    }
    // Statements compiled by a virtual table meanwhile do not count for the next one.
    authorizer.takeIsChanging()
  }
  if (number === 0) throw new SqlProblem('The SQL has no statement')
  authorizer.runOwn('COMMIT')
  return { rows_affected: Number(affected), ...(rowid !== 0n && { last_insert_rowid: toInteger(rowid) }), ...rows }
}

function count(counters: StatementSync): { direct: bigint; rowid: bigint } {
  const { direct, rowid } = counters.get() ?? {}
  return { direct: typeof direct === 'bigint' ? direct : 0n, rowid: typeof rowid === 'bigint' ? rowid : 0n }
}
