import type { Description, ExecuteResult, Param, QueryResult } from './keeper.ts'

/** What a database process is told, and what it says. */

export type Job = {
  /** A load makes a file into one that a database can be, and has no result. */
  do: 'query' | 'describe' | 'execute' | 'load'
  path: string
  sql: string
  params: Param[]
  limits: JobLimits
}
export type JobLimits = { timeMs: number; memoryBytes: number }

/** An execute that is done leaves the database open and its changes in the WAL. Keeping moves them into the file. */
export type Keep = { do: 'keep' }

export type Done = { outcome: 'done'; result: QueryResult | Description | ExecuteResult | undefined }
/** `failed`: neither the SQL nor the database is to blame. The database may be open. */
export type Reply =
  | Done
  | { outcome: 'sql_error' | 'damaged'; message: string }
  | { outcome: 'failed'; message: string }
  | { outcome: 'kept' }

/** `isSpent`: the process has taken so much memory that it should not get another job. */
export type Answer = { reply: Reply; isSpent: boolean }

/** First message of a process. */
export const READY = 'ready'

/** Signal by which the watchdog ends its process, which tells the reason. All of them end one that is inside of SQLite. */
export const END_SIGNALS = { late: 'SIGALRM', out_of_memory: 'SIGUSR2' } as const
export type EndReason = keyof typeof END_SIGNALS
