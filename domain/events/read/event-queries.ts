import { Prisma } from '../../../prisma/generated/client.ts'
import { isFull, type SizedRow } from '../../kit/page-by-size.ts'
import type { Deps } from '../deps.ts'
import type { StoredEvent } from '../log/present.ts'
import { type EventFilter, wantedTypes } from './filter.ts'
import { EVENT_COLUMNS, sizedEventsSql } from './page-sql.ts'

export type Row = Omit<StoredEvent, 'sessionId'>

/**
 * Result of one read of the record. It includes every event up to `through`, because a session's events are appended in
 * the order of commits.
 */
export type EventRows = {
  rows: Row[]
  /** Last sequence of the session; undefined when the session is gone. */
  through: number | undefined
  /** True if more rows may follow. */
  hasMore: boolean
  /** True if the rows reach the size of a page, so they are large. */
  isFull: boolean
}

type FoundRow = Row & SizedRow & { through: number }

/** Reads the events after sequence `after`, up to `limit` and the size of a page. */
export async function readEventRows(
  deps: Deps,
  sessionId: string,
  after: number,
  limit: number,
  filter: EventFilter,
): Promise<EventRows> {
  const events = Prisma.sql`
    SELECT ${EVENT_COLUMNS} FROM events
    WHERE session_id = s.id AND sequence > ${after}
      AND type = ANY (${wantedTypes(filter)}::text[])
      AND (${filter.turnId ?? null}::uuid IS NULL OR turn_id = ${filter.turnId ?? null}::uuid)
    ORDER BY sequence LIMIT ${limit}`
  const found = await deps.db.$queryRaw<FoundRow[]>`
    SELECT s.last_sequence AS through, page.* FROM sessions s LEFT JOIN LATERAL ${sizedEventsSql(events)} AS page ON true
    WHERE s.id = ${sessionId}::uuid ORDER BY page.sequence`
  // A session without matching events yields one row without an event.
  const rows = found.filter((row) => row.sequence !== null)
  return {
    rows,
    through: found[0]?.through,
    hasMore: isFull(found) || rows.length === limit,
    isFull: isFull(found),
  }
}

/**
 * Returns the text of a message before this delta, for a reader that begins in the middle; undefined if the delta is
 * gone. A message's deltas are deleted all at once, so while this one exists the text is complete.
 */
export async function textBefore(deps: Deps, event: StoredEvent): Promise<string | undefined> {
  const rows = await deps.db.$queryRaw<{ text: string | null; isThere: boolean | null }[]>`
    SELECT string_agg(data ->> 'delta', '' ORDER BY sequence) FILTER (WHERE sequence < ${event.sequence}) AS text,
      bool_or(sequence = ${event.sequence}) AS "isThere" FROM events
    WHERE session_id = ${event.sessionId}::uuid AND sequence <= ${event.sequence}
      AND sequence > (SELECT input_sequence FROM turns WHERE id = ${event.turnId}::uuid)
      AND turn_id = ${event.turnId}::uuid AND type = ${event.type} AND exec_id = ${event.execId}::uuid`
  return rows[0]?.isThere ? (rows[0].text ?? '') : undefined
}
