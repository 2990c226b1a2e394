import { type Database, MAX_DATABASES } from '../../../contract/databases.ts'
import type { Actor } from '../../kit/actor.ts'
import { conflict, noSession, tooMany } from '../../kit/errors.ts'
import { newUuid } from '../../kit/ids.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import { requireSession } from '../../kit/session-scope.ts'
import { waitForLocks } from '../../kit/wait-for-locks.ts'
import type { Deps } from '../deps.ts'
import { tooManyDatabases } from './create.ts'
import { resultOf } from './failure.ts'
import { presentDatabase } from './present.ts'
import { findDatabase, type NamedDatabase, requireDatabase } from './read.ts'
import { PAGE_BYTES, type Pages } from './sqlite-runner/sqlite-runner.ts'

/** A database as a file. Different bytes have a different `etag`. */
export type DatabaseFile = {
  sizeBytes: number
  etag: string
  /** Reads bytes. Throws `conflict` once the database has been changed. */
  read(start: number, end: number): AsyncIterable<Uint8Array>
}

/** Number of pages read at once: 1 MiB. */
const PAGES_AT_ONCE = 256
/** Offset of the file format's bytes in the header: 1 for a rollback journal, 2 for a write-ahead log. */
const FORMAT_AT = 18
const WITH_JOURNAL = Buffer.from([1, 1])

/** Opens a database as a SQLite file. Throws `not_found`. */
export async function openDatabaseFile(deps: Deps, actor: Actor, named: NamedDatabase): Promise<DatabaseFile> {
  const { id, version, pageCount } = await requireDatabase(deps, actor, named)
  const place = { organizationId: actor.organizationId, sessionId: named.session_id, databaseId: id }
  const readPages = async (first: number, count: number): Promise<Buffer> => {
    const batch = await deps.databaseStore.readPages(place, version, first - 1)
    if (batch === undefined) throw conflict('The database was changed while it was read; try again')
    // Pages missing from the record are free.
    const pages = Buffer.alloc(count * PAGE_BYTES)
    for (const [index, number] of batch.numbers.entries()) {
      const bytes = batch.bytes.subarray(index * PAGE_BYTES, (index + 1) * PAGE_BYTES)
      if (number < first + count) pages.set(bytes, (number - first) * PAGE_BYTES)
    }
    if (first === 1) pages.set(WITH_JOURNAL, FORMAT_AT)
    return pages
  }
  async function* read(start: number, end: number): AsyncGenerator<Uint8Array> {
    for (let at = start; at < end; ) {
      const first = Math.floor(at / PAGE_BYTES) + 1
      const beginning = (first - 1) * PAGE_BYTES
      const pages = await readPages(first, Math.min(PAGES_AT_ONCE, pageCount - first + 1))
      yield pages.subarray(at - beginning, end - beginning)
      at = beginning + pages.length
    }
  }
  return { sizeBytes: pageCount * PAGE_BYTES, etag: `${id}-${version}`, read }
}

/** Time for storing a file again after others have changed, deleted or created the database. */
const RETRY_LIMIT_MS = 30_000

type Answer = { outcome: 'stored' | 'conflict' | 'gone' | 'exists' | 'too_many' | 'session_gone' }

/**
 * Creates a database from a SQLite file, or replaces the database of this name. A running script is run again on the
 * new one. Throws `not_found`, `too_many`, `unprocessable` for an unusable file, and `conflict` for too many databases.
 */
export async function putDatabaseFile(
  deps: Deps,
  actor: Actor,
  { session_id: sessionId, name }: NamedDatabase,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<{ database: Database; isNew: boolean }> {
  const { organizationId } = actor
  await requireSession(deps, actor, sessionId)
  const store = (pages: Pages) => storePages(deps, { organizationId, sessionId, signal }, name, pages)
  const owner = await deps.owners.ownerOf(organizationId)
  const isNew = resultOf(await deps.sqliteRunner.load(chunks, store, { owner }, signal))
  const row = await requireDatabase(deps, actor, { session_id: sessionId, name })
  return { database: presentDatabase(row), isNew }
}

/** Stores the pages, replacing the database. Returns whether it is new. */
async function storePages(deps: Deps, scope: SessionScope, name: string, pages: Pages): Promise<boolean> {
  const { organizationId, sessionId, signal } = scope
  for (const until = performance.now() + RETRY_LIMIT_MS; performance.now() < until; ) {
    const found = await findDatabase(deps, scope, name)
    const database = { databaseId: found?.id ?? newUuid(), version: found?.version ?? 0 }
    const made = { name: found === null ? name : undefined, maxCount: MAX_DATABASES }
    const call = { organizationId, sessionId, writer: undefined, ...database, ...made, ...pages, effect: 'null' }
    // store_session_database returns this.
    const { outcome } = (await waitForLocks(() => deps.databaseStore.store(call), 'The database is', signal)) as Answer
    if (outcome === 'stored') return found === null
    if (outcome === 'session_gone') throw noSession()
    if (outcome === 'too_many') throw tooManyDatabases()
  }
  throw tooMany('Others change the database all the time; try again', 2)
}
