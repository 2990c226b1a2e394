import type { CallWriter, SessionScope } from '../../kit/session-scope.ts'
import type { PageBatch, State } from './sqlite-runner/sqlite-runner.ts'

/** Databases of sessions in Postgres, read and written by the driver itself. platform/postgres/database-store.ts implements it. */
export type DatabaseStore = {
  /** Calls create_session_database (prisma/functions), which documents it. Returns its answer. */
  create(place: DatabasePlace, name: string, maxCount: number): Promise<unknown>
  /** Calls delete_session_database. Returns its answer. */
  delete(session: SessionScope, name: string): Promise<unknown>
  /** Calls store_session_database. Returns its answer. */
  store(call: StoreCall): Promise<unknown>
  /**
   * Reads the state of a database, and the pages that changed after version `since`, by number, in batches of 1 MiB.
   * All belong to that state. Undefined if the database is gone. After the first batch, pages are read on demand, on a
   * separate connection: take all of them, or break off.
   */
  read(place: DatabasePlace, since: number): Promise<State | undefined>
  /** Returns at most 256 pages after number `after`. Undefined if the database has another version or is gone. */
  readPages(place: DatabasePlace, version: number, after: number): Promise<PageBatch | undefined>
}

export type DatabasePlace = { organizationId: string; sessionId: string; databaseId: string }

export type StoreCall = PageBatch & {
  organizationId: string
  sessionId: string
  writer: CallWriter | undefined
  databaseId: string
  /** State on which the script was run. */
  version: number
  /** Name of the database that the call creates. */
  name: string | undefined
  maxCount: number
  pageCount: number
  /** JSON. */
  effect: string
}
