import type { SessionId } from '../../contract/ids.ts'
import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { invalid, notFound } from '../errors.ts'
import { requireSession } from '../sessions/read.ts'
import type { EventFilter } from './filter.ts'
import { createEventReader, type EventLine } from './read.ts'

const BATCH = 500

/** The session and the sequence after which a client wants to go on: 0 without a cursor. */
export async function openCursor(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  sinceId: string | undefined,
): Promise<{ sessionId: string; after: number }> {
  const session = await requireSession(deps, actor, sessionId)
  if (sinceId === undefined) return { sessionId: session.id, after: 0 }
  const after = deps.events.ids.decode(session.id, sinceId)
  // A genuine id of an event that is not there: the record was set back to an earlier state.
  if (after > session.lastSequence) throw invalid('since_id is ahead of the record; start without it')
  return { sessionId: session.id, after }
}

/**
 * Events in order, in batches that fit in memory, up to `limit` or to the end of the record. Throws `not_found` when the
 * session is deleted meanwhile.
 */
export async function* listEvents(
  deps: Deps,
  sessionId: string,
  after: number,
  filter: EventFilter,
  limit = Number.POSITIVE_INFINITY,
): AsyncGenerator<EventLine[]> {
  const read = createEventReader(deps, sessionId, { filter, batch: Math.min(BATCH, limit), ahead: limit > BATCH })
  let left = limit
  let cursor = after
  while (left > 0) {
    const { events, through, hasMore } = await read(cursor)
    if (events.length > 0) yield events.slice(0, left)
    if (through === undefined) throw notFound('Session')
    if (!hasMore) return
    cursor = through
    left -= events.length
  }
}
