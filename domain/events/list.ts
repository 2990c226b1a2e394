import type { Actor } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { invalid, notFound } from '../errors.ts'
import { type Pages, type Place, pages } from '../lists.ts'
import { requireSession } from '../sessions/read.ts'
import type { EventFilter } from './filter.ts'
import { createEventReader, type EventLine } from './read.ts'

const EVENTS_AT_ONCE = 500

/** The session and the sequence after which a client wants to go on: 0 without a cursor. */
export async function openCursor(
  deps: Deps,
  actor: Actor,
  sessionId: string,
  sinceId: string | undefined,
): Promise<{ sessionUuid: string; after: number }> {
  const session = await requireSession(deps, actor, sessionId)
  if (sinceId === undefined) return { sessionUuid: session.id, after: 0 }
  const after = deps.events.ids.decode(session.id, sinceId)
  // A genuine id of an event that is not there: the record was set back to an earlier state.
  if (after > session.lastSequence) throw invalid('since_id is ahead of the record; start without it')
  return { sessionUuid: session.id, after }
}

/** Events in order, up to `limit` or to the end of the record. Throws `not_found` when the session is deleted meanwhile. */
export function listEvents(
  deps: Deps,
  sessionUuid: string,
  after: number,
  filter: EventFilter,
  limit = Number.POSITIVE_INFINITY,
): Pages<EventLine> {
  const atOnce = Math.min(EVENTS_AT_ONCE, limit)
  const read = createEventReader(deps, sessionUuid, { filter, batch: atOnce, ahead: limit > EVENTS_AT_ONCE })
  return pages({
    atOnce,
    limit,
    read: async (place: Place<EventLine>) => {
      const { events, through, hasMore } = await read(place.after?.sequence ?? after)
      if (through === undefined) throw notFound('Session')
      return { rows: events, hasMore }
    },
    present: (events) => events,
  })
}
