import type { CallWriter, SessionScope } from '../../kit/session-scope.ts'
import type { PageBatch, State } from './sqlite-runner/sqlite-runner.ts'

/** Databases of sessions in Postgres, read and written by the driver itself. platform/postgres/database-store.ts implements it. */
export type DatabaseStore = {
  /** Calls create_session_database (prisma/functions), which has the manual. Returns its answer. */
  create(place: DatabasePlace, name: string, maxCount: number): Promise<unknown>
  /** Calls delete_session_database. Returns its answer. */
  delete(session: SessionScope, name: string): Promise<unknown>
  /** Calls store_session_database. Returns its answer. */
  store(call: StoreCall): Promise<unknown>
  /**
   * Reads the state of a database, and the pages that changed after version `since`, by number, in batches of 1 MiB. All
   * of them are of that state. Undefined when the database is gone. More than a batch is read while it is taken, on a
   * connection of its own: take all of it, or break off.
   */
  read(place: DatabasePlace, since: number): Promise<State | undefined>
  /** Returns at most 256 pages behind number `after`. Undefined when the database has another version, or is gone. */
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
  /** Name of a database that the call makes. */
  name: string | undefined
  maxCount: number
  pageCount: number
  /** JSON. */
  effect: string
}
