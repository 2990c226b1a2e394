import { noSession } from '../../kit/errors.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import type { EventFilter } from './filter.ts'
import { createEventReader, type EventLine, type ExpandGenerations } from './read.ts'

const EVENTS_AT_ONCE = 500

export type ListOptions = { filter?: EventFilter; expand: ExpandGenerations; limit?: number | undefined }

/**
 * Lists events in order, up to `limit` or the end of the record. Throws `not_found` if the session is deleted
 * meanwhile.
 */
export function listEvents(
  deps: Deps,
  sessionId: string,
  after: number,
  { filter = {}, expand, limit = Number.POSITIVE_INFINITY }: ListOptions,
): Pages<EventLine> {
  const batch = Math.min(EVENTS_AT_ONCE, limit)
  const read = createEventReader(deps, sessionId, { filter, expand, batch, ahead: limit > EVENTS_AT_ONCE })
  return pages({
    atOnce: batch,
    limit,
    read: async (place: PageStart<EventLine>) => {
      const { events, through, hasMore } = await read(place.after?.sequence ?? after)
      if (through === undefined) throw noSession()
      return { rows: events, hasMore }
    },
    present: (events) => events,
  })
}
