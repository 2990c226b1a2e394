import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'

/** Tables with a `session_id` whose rows no foreign key deletes, because there may be very many. */
const OWNED = ['events']

/** So that a statement stays far from its 30 s, however long the session was, and however large its rows. */
const BATCH = 2000

/**
 * Deletes all that a session owned and that no foreign key deletes with it. Resolves when nothing is left, whoever has
 * deleted it: it may run twice at once. Throws the signal's reason when it aborts.
 */
export async function deleteOwnedData(deps: Deps, sessionId: string, signal?: AbortSignal): Promise<void> {
  for (const table of OWNED) await removeRows(deps, Prisma.raw(table), sessionId, signal)
}

async function removeRows(
  { db }: Deps,
  table: Prisma.Sql,
  sessionId: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const findRow = () => db.$queryRaw<unknown[]>`SELECT 1 FROM ${table} WHERE session_id = ${sessionId}::uuid LIMIT 1`
  // What somebody else is deleting is there until that has been committed.
  while ((await findRow()).length > 0) {
    signal?.throwIfAborted()
    await db.$executeRaw`
      DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ${table} WHERE session_id = ${sessionId}::uuid LIMIT ${BATCH}
      ))`
  }
}
