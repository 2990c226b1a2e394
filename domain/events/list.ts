import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import type { EventFilter } from './filter.ts'
import { createEventReader, type EventLine, type ExpandGenerations } from './read.ts'

const BATCH = 500

export type ListOptions = { filter?: EventFilter; expand: ExpandGenerations; limit?: number | undefined }

/**
 * Events in order, in batches that fit in memory, up to `limit` or to the end of the record. Throws `not_found` when the
 * session is deleted meanwhile.
 */
export async function* listEvents(
  deps: Deps,
  sessionId: string,
  after: number,
  { filter = {}, expand, limit = Number.POSITIVE_INFINITY }: ListOptions,
): AsyncGenerator<EventLine[]> {
  const batch = Math.min(BATCH, limit)
  const read = createEventReader(deps, sessionId, { filter, expand, batch, ahead: limit > BATCH })
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
