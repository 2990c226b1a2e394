import type { EventType } from '../../contract/events.ts'
import type { Message } from '../../contract/messages.ts'
import type { Deps } from '../deps.ts'
import { applyCompaction, patchDanglingCalls, type Thresholds } from '../turns/context.ts'
import { readConversation, withoutImages } from './conversation.ts'
import { messageTypes, presentEvent, presentMessage, type ReadParts, type StoredEvent } from './present.ts'

/** Which events a reader wants; undefined: all. */
export type EventFilter = { types?: EventType[] | undefined; exclude?: EventType[] | undefined }

export const wants = (filter: EventFilter, type: string): boolean =>
  (filter.types === undefined || filter.types.includes(type as EventType)) &&
  !(filter.exclude?.includes(type as EventType) ?? false)

/** An event on its way to a client: `line` is the whole event as one line of JSON, `turnId` a uuid. */
export type EventLine = { id: string; type: string; sequence: number; turnId: string; line: string }
/** `through`: everything up to this sequence has been read; undefined when the session is gone. */
export type EventPage = { events: EventLine[]; through: number | undefined; hasMore: boolean }
export type EventReader = (after: number, limit: number) => Promise<EventPage>

/** A page ends with the event that passes this: pages are bounded in bytes, not only in events. */
const PAGE_BYTES = 1024 * 1024

type Row = Omit<StoredEvent, 'sessionId'>

/**
 * Reads a session's events in order, page by page. One reader serves one pass from old to new: it remembers the
 * text of unfinished messages, so that `accumulated` costs nothing extra from page to page.
 */
export function createEventReader(deps: Deps, sessionId: string, filter: EventFilter = {}): EventReader {
  const texts = new Map<string, string>()
  let position: number | undefined

  const partsOf = async (event: StoredEvent): Promise<ReadParts> => {
    if (event.type === 'output.message.delta' || event.type === 'reason.thinking.delta') {
      const key = `${event.execId}/${event.type}`
      const before = texts.get(key) ?? (await textBefore(deps, event))
      const accumulated = before + String(event.data.delta)
      texts.set(key, accumulated)
      return { accumulated }
    }
    if (event.type === 'output.message.started') {
      texts.set(`${event.execId}/output.message.delta`, '')
      texts.set(`${event.execId}/reason.thinking.delta`, '')
    }
    if (event.type === 'output.message.completed') texts.clear()
    if (event.type === 'llm.generation') return { messages: await messagesBefore(deps, event) }
    return {}
  }

  return async (after, limit) => {
    // Between two reads the follower may have gone on live; what is remembered is then out of date.
    if (after !== position) texts.clear()
    const through = await lastSequence(deps, sessionId)
    if (through === undefined || through <= after) return { events: [], through, hasMore: false }
    const rows = await readRows(deps, sessionId, after, through, limit, filter)
    const events: EventLine[] = []
    let bytes = 0
    for (const { found, ...row } of rows) {
      const stored = { ...row, sessionId }
      const event = presentEvent(deps.eventIds, stored, await partsOf(stored))
      const line = JSON.stringify(event)
      events.push({ id: event.id, type: event.type, sequence: event.sequence, turnId: row.turnId, line })
      bytes += line.length
      if (bytes > PAGE_BYTES) break
    }
    const found = rows[0]?.found ?? 0
    const hasMore = events.length < found || found === limit
    position = hasMore ? events.at(-1)?.sequence : through
    return { events, through: position, hasMore }
  }
}

async function lastSequence(deps: Deps, sessionId: string): Promise<number | undefined> {
  const session = await deps.db.session.findUnique({ where: { id: sessionId }, select: { lastSequence: true } })
  return session?.lastSequence
}

/**
 * Appends of a session are in order of commit, so everything up to `through` is there to be read. `found` counts the
 * rows up to the limit, of which those come back that begin within a page's bytes.
 */
function readRows(deps: Deps, sessionId: string, after: number, through: number, limit: number, filter: EventFilter) {
  return deps.db.$queryRaw<(Row & { found: number })[]>`
    SELECT sequence, type, ts, turn_id AS "turnId", step, exec_id AS "execId", data, found FROM (
      SELECT *, (count(*) OVER ())::int AS found,
        sum(pg_column_size(data)) OVER (ORDER BY sequence) - pg_column_size(data) AS bytes_before
      FROM (
        SELECT sequence, type, ts, turn_id, step, exec_id, data FROM events
        WHERE session_id = ${sessionId}::uuid AND sequence > ${after} AND sequence <= ${through}
          AND (${filter.types ?? null}::text[] IS NULL OR type = ANY (${filter.types ?? null}::text[]))
          AND (${filter.exclude ?? null}::text[] IS NULL OR type <> ALL (${filter.exclude ?? null}::text[]))
        ORDER BY sequence LIMIT ${limit}
      ) AS page
    ) AS measured
    WHERE bytes_before < ${PAGE_BYTES} ORDER BY sequence`
}

/** The text of a message before this delta, for a reader that begins in its middle. */
async function textBefore(deps: Deps, event: StoredEvent): Promise<string> {
  const rows = await deps.db.$queryRaw<{ text: string | null }[]>`
    SELECT string_agg(data ->> 'delta', '' ORDER BY sequence) AS text FROM events
    WHERE session_id = ${event.sessionId}::uuid AND sequence < ${event.sequence}
      AND sequence > (SELECT input_sequence FROM turns WHERE id = ${event.turnId}::uuid)
      AND turn_id = ${event.turnId}::uuid AND type = ${event.type} AND exec_id = ${event.execId}::uuid`
  return rows[0]?.text ?? ''
}

/** What the model call of an llm.generation was given: nothing is stored twice for it. */
async function messagesBefore(deps: Deps, event: StoredEvent): Promise<Message[]> {
  const messages = patchDanglingCalls(await readConversation(deps, event.sessionId, event.turnId, event.sequence))
  // Written with the event, by the call that it tells of.
  const thresholds = event.data.thresholds as Thresholds | undefined
  return (thresholds === undefined ? messages : applyCompaction(messages, thresholds)).map(withoutImages)
}

const MESSAGES_PAGE = 20

/** The messages of a session in pages that fit in memory, newest first unless `order` says otherwise. */
export async function* readMessages(
  deps: Deps,
  sessionId: string,
  { order, limit = Number.POSITIVE_INFINITY, offset }: { order: 'asc' | 'desc'; limit?: number; offset: number },
): AsyncGenerator<Message[]> {
  let cursor: number | undefined
  for (let left = limit; left > 0; left -= MESSAGES_PAGE) {
    const take = Math.min(MESSAGES_PAGE, left)
    const sequence = cursor === undefined ? undefined : order === 'asc' ? { gt: cursor } : { lt: cursor }
    const rows = await deps.db.event.findMany({
      where: { sessionId, type: { in: [...messageTypes] }, sequence },
      orderBy: { sequence: order },
      skip: cursor === undefined ? offset : 0,
      take,
    })
    // Only the append functions write events, and the query names the three types.
    if (rows.length > 0) yield rows.map((row) => presentMessage(row as StoredEvent))
    if (rows.length < take) return
    cursor = rows.at(-1)?.sequence
  }
}
