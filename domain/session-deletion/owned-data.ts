import type { Deps } from '../deps.ts'

/**
 * Deletes all that a session owned and that no foreign key deletes with it. Resolves when nothing is left, whoever has
 * deleted it: it may run twice at once. Throws the signal's reason when it aborts.
 */
export async function deleteOwnedData(deps: Deps, sessionId: string, signal?: AbortSignal): Promise<void> {
  await removeEvents(deps, sessionId, signal)
}

/** So that a statement stays far from its 30 s, however long the session was, and however large its events. */
const BATCH = 2000

async function removeEvents(deps: Deps, sessionId: string, signal: AbortSignal | undefined): Promise<void> {
  // What somebody else is deleting is there until that has been committed.
  while ((await deps.db.event.findFirst({ where: { sessionId }, select: { sequence: true } })) !== null) {
    signal?.throwIfAborted()
    await deps.db.$executeRaw`
      DELETE FROM events WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM events WHERE session_id = ${sessionId}::uuid LIMIT ${BATCH}
      ))`
  }
}
