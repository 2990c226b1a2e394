import type { Deps } from '../deps.ts'

/**
 * What a session has outside of its own row. An area that adds something to sessions adds it here, and nowhere else:
 * deleting a session and presenting one take it from these two. (Features come with the capabilities that bring them.)
 */

/**
 * Deletes all that a session owned and that no foreign key deletes with it. Resolves when nothing is left, whoever has
 * deleted it: it may run twice at once. Throws the signal's reason when it aborts.
 */
export async function removeParts(deps: Deps, sessionId: string, signal?: AbortSignal): Promise<void> {
  await removeEvents(deps, sessionId, signal)
}

/** Enabled schedules that target the session, for each uuid that has some. */
export async function countActiveSchedules(_deps: Deps, _sessionIds: string[]): Promise<Map<string, number>> {
  // There are no schedules yet.
  return new Map()
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
