import type { CallWriter, SessionScope } from '../session-scope.ts'
import type { PageBatch } from './keeper/keeper.ts'

/** Databases of sessions in Postgres, read and written by the driver itself. platform/database-store.ts implements it. */
export type DatabaseStore = {
  /** Calls create_session_database (prisma/functions), which has the manual. Returns its answer. */
  create(place: DatabasePlace, name: string, maxCount: number): Promise<unknown>
  /** Calls delete_session_database. Returns its answer. */
  delete(session: SessionScope, name: string): Promise<unknown>
  /** Calls store_session_database. Returns its answer. */
  store(call: StoreCall): Promise<unknown>
  /** Returns the state of a database; undefined when it is gone. */
  readState(place: DatabasePlace): Promise<DatabaseState | undefined>
  /**
   * Reads the pages that changed after version `since`, by number, in batches of 1 MiB, all of them as they are in state
   * `version`. Throws `StateChanged` before the first batch when the database has another version, or is gone. Holds a
   * connection until the end.
   */
  readPages(place: DatabasePlace, version: number, since: number): AsyncIterable<PageBatch>
}

export type DatabasePlace = { organizationId: string; sessionId: string; databaseId: string }
export type DatabaseState = { version: number; pageCount: number }

export type StoreCall = PageBatch & {
  organizationId: string
  sessionId: string
  writer: CallWriter
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

/** Error of a reader: somebody has written between its look at the state and its reading of the pages. */
export class StateChanged extends Error {
  override name = 'StateChanged'
}
