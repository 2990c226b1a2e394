import type { Description, ExecuteResult, QueryResult, Statement } from './sqlite-runner/sqlite-runner.ts'

/** A session's databases as a tool call reads and writes them. Names are valid. Throws DomainErrors. */
export type SessionDatabases = {
  /** Runs a statement that only reads. */
  query(name: string, statement: Statement): Promise<QueryResult>
  describe(name: string): Promise<Description>
  /**
   * Runs a script as one transaction, once per call: a further attempt (`mayHaveRun`) returns the first answer. Creates
   * a missing database.
   */
  execute(name: string, script: Statement, options: { mayHaveRun: boolean }): Promise<ExecuteResult>
}
