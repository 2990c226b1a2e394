import { Prisma } from '../../../prisma/generated/client.ts'
import { isSharedSpace } from '../../session-data/files/spaces.ts'
import type { Deps } from '../deps.ts'

/** Table whose rows stay while forks share them (domain/session-data/files/spaces.ts). */
const SHARED = 'session_file_chunks'

/** Tables with a `session_id` whose rows no foreign key deletes, because there may be very many. */
const OWNED = [
  'events',
  'session_texts',
  'session_files',
  SHARED,
  'session_snapshots',
  'session_database_pages',
  'session_values',
  'session_secrets',
  'call_secrets',
  'organization_events',
]

/**
 * Number of rows deleted by one statement. It keeps the statement far below its limit of 30 s, even with large rows.
 */
const BATCH = 2000

/**
 * Deletes all data of a session that no foreign key deletes with it. Resolves when nothing is left, whichever process
 * deleted it, so it may run concurrently. Throws the signal's reason when it aborts.
 */
export async function deleteOwnedData(deps: Deps, sessionId: string, signal?: AbortSignal): Promise<void> {
  for (const table of OWNED) {
    if (table === SHARED && (await isSharedSpace(deps, sessionId))) continue
    await removeRows(deps, Prisma.raw(table), sessionId, signal)
  }
}

async function removeRows(
  { db }: Deps,
  table: Prisma.Sql,
  sessionId: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const findRow = () => db.$queryRaw<unknown[]>`SELECT 1 FROM ${table} WHERE session_id = ${sessionId}::uuid LIMIT 1`
  // Rows that another process is deleting are visible until it commits.
  while ((await findRow()).length > 0) {
    signal?.throwIfAborted()
    await db.$executeRaw`
      DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE session_id = ${sessionId}::uuid LIMIT ${BATCH}
      ))`
  }
}
