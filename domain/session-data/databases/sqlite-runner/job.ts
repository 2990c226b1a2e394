import type { Description, ExecuteResult, Param, QueryResult } from './sqlite-runner.ts'

/** Messages to and from a database process. */

export type Job = {
  /** A load converts a file to a session's database in place, and has no result. */
  do: 'query' | 'describe' | 'execute' | 'load'
  path: string
  sql: string
  params: Param[]
  limits: JobLimits
}
export type JobLimits = { timeMs: number; memoryBytes: number }

/** A finished execute leaves the database open and its changes in the WAL. Keeping moves them into the file. */
export type Keep = { do: 'keep' }

export type Done = { outcome: 'done'; result: QueryResult | Description | ExecuteResult | undefined }
/** `failed`: neither the SQL nor the database is at fault. The database may be open. */
export type Reply =
  | Done
  | { outcome: 'sql_error' | 'damaged'; message: string }
  | { outcome: 'failed'; message: string }
  | { outcome: 'kept' }

/** `isSpent`: the process uses too much memory for another job. */
export type Answer = { reply: Reply; isSpent: boolean }

/** First message of a process. */
export const READY = 'ready'

/** Signals by which the watchdog ends its process, by reason. They work even inside SQLite. */
export const END_SIGNALS = { late: 'SIGALRM', out_of_memory: 'SIGUSR2' } as const
export type EndReason = keyof typeof END_SIGNALS
