import type { EventType } from '../../contract/events.ts'
import type { Message } from '../../contract/messages.ts'
import type { Deps } from '../deps.ts'
import { applyCompaction, patchDanglingCalls, type Thresholds } from '../turns/context.ts'
import { readConversation, readConversations, withoutImages } from './conversation.ts'
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
 * Reads a session's events in order, page by page, the next one while its reader is busy with the last. One reader
 * serves one pass from old to new: it remembers the text of unfinished messages, so that `accumulated` costs nothing
 * extra from page to page.
 */
export const createEventReader = (deps: Deps, sessionId: string, filter: EventFilter = {}): EventReader =>
  readAhead(createPageReader(deps, sessionId, filter))

function readAhead(read: EventReader): EventReader {
  let ahead: { after: number; limit: number; page: Promise<EventPage> } | undefined
  return async (after, limit) => {
    const begun = ahead
    ahead = undefined
    const isWanted = begun?.after === after && begun.limit === limit
    // One page at a time is read, also when this one is not wanted any more.
    if (!isWanted) await begun?.page.catch(() => {})
    const page = await (isWanted ? begun.page : read(after, limit))
    if (page.hasMore && page.through !== undefined) {
      ahead = { after: page.through, limit, page: read(page.through, limit) }
      // Whoever asks for the page gets the error; it may be that nobody does.
      ahead.page.catch(() => {})
    }
    return page
  }
}

function createPageReader(deps: Deps, sessionId: string, filter: EventFilter): EventReader {
  const texts = new Map<string, string>()
  let position: number | undefined

  /** Undefined when retention has deleted the event since its page was read. */
  const partsOf = async (
    event: StoredEvent,
    inputOf: (event: Row) => Promise<Message[]>,
  ): Promise<ReadParts | undefined> => {
    if (event.type === 'output.message.delta' || event.type === 'reason.thinking.delta') {
      const key = `${event.execId}/${event.type}`
      const before = texts.get(key) ?? (await textBefore(deps, event))
      if (before === undefined) return undefined
      const accumulated = before + String(event.data.delta)
      texts.set(key, accumulated)
      return { accumulated }
    }
    if (event.type === 'output.message.started') {
      texts.set(`${event.execId}/output.message.delta`, '')
      texts.set(`${event.execId}/reason.thinking.delta`, '')
    }
    if (event.type === 'output.message.completed') texts.clear()
    if (event.type === 'llm.generation') return { messages: await inputOf(event) }
    return {}
  }

  const read: EventReader = async (after, limit) => {
    // Between two reads the follower may have gone on live; what is remembered is then out of date.
    if (after !== position) texts.clear()
    const { rows, through, isCut } = await readRows(deps, sessionId, after, limit, filter)
    const inputOf = createInputs(deps, sessionId, rows)
    const events: EventLine[] = []
    let bytes = 0
    for (const row of rows) {
      const stored = { ...row, sessionId }
      const parts = await partsOf(stored, inputOf)
      if (parts === undefined) {
        // Without what has gone, this page is another one.
        texts.clear()
        return read(after, limit)
      }
      const event = presentEvent(deps.eventIds, stored, parts)
      const line = JSON.stringify(event)
      events.push({ id: event.id, type: event.type, sequence: event.sequence, turnId: row.turnId, line })
      bytes += line.length
      if (bytes > PAGE_BYTES) break
    }
    const hasMore = isCut || events.length < rows.length || rows.length === limit
    position = hasMore ? events.at(-1)?.sequence : through
    return { events, through: position, hasMore }
  }
  return read
}

/** `bytes`: of the page up to and with this row, as they are stored. */
type MeasuredRow = Row & { through: number; bytes: bigint }

/**
 * One look at the record: appends of a session are in order of commit, so everything up to `through` is there.
 * `isCut`: there are more rows up to the limit than those that begin within a page's bytes.
 */
async function readRows(
  deps: Deps,
  sessionId: string,
  after: number,
  limit: number,
  filter: EventFilter,
): Promise<{ rows: Row[]; through: number | undefined; isCut: boolean }> {
  const rows = await deps.db.$queryRaw<MeasuredRow[]>`
    SELECT s.last_sequence AS through, page.* FROM sessions s LEFT JOIN LATERAL (
      SELECT sequence, type, ts, turn_id AS "turnId", step, exec_id AS "execId", data, bytes FROM (
        SELECT *, sum(pg_column_size(data)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS bytes FROM (
          SELECT sequence, type, ts, turn_id, step, exec_id, data FROM events
          WHERE session_id = s.id AND sequence > ${after}
            AND (${filter.types ?? null}::text[] IS NULL OR type = ANY (${filter.types ?? null}::text[]))
            AND (${filter.exclude ?? null}::text[] IS NULL OR type <> ALL (${filter.exclude ?? null}::text[]))
          ORDER BY sequence LIMIT ${limit}
        ) AS found
      ) AS measured
      WHERE bytes - pg_column_size(data) < ${PAGE_BYTES}
    ) AS page ON true
    WHERE s.id = ${sessionId}::uuid ORDER BY page.sequence`
  return {
    // A session without such events gives one row, without an event.
    rows: rows.filter((row) => row.sequence !== null),
    through: rows[0]?.through,
    isCut: (rows.at(-1)?.bytes ?? 0) >= PAGE_BYTES,
  }
}

/**
 * The text of a message before this delta, for a reader that begins in its middle. A message's deltas are deleted all at
 * once, so the text is whole while this one is there.
 */
async function textBefore(deps: Deps, event: StoredEvent): Promise<string | undefined> {
  const rows = await deps.db.$queryRaw<{ text: string | null; isThere: boolean | null }[]>`
    SELECT string_agg(data ->> 'delta', '' ORDER BY sequence) FILTER (WHERE sequence < ${event.sequence}) AS text,
      bool_or(sequence = ${event.sequence}) AS "isThere" FROM events
    WHERE session_id = ${event.sessionId}::uuid AND sequence <= ${event.sequence}
      AND sequence > (SELECT input_sequence FROM turns WHERE id = ${event.turnId}::uuid)
      AND turn_id = ${event.turnId}::uuid AND type = ${event.type} AND exec_id = ${event.execId}::uuid`
  return rows[0]?.isThere ? (rows[0].text ?? '') : undefined
}

/**
 * What the model calls of a page were given: nothing is stored twice for it. Read when the first is asked for, once for
 * all of them.
 */
function createInputs(deps: Deps, sessionId: string, rows: Row[]): (event: Row) => Promise<Message[]> {
  const calls = rows.filter(({ type }) => type === 'llm.generation')
  const last = calls.at(-1)
  const since = Math.min(...calls.map((call) => partOf(call).since))
  let reading: ReturnType<typeof readConversations> | undefined
  return async (event) => {
    const part = partOf(event)
    reading ??= readConversations(deps, sessionId, (last ?? event).turnId, { before: last?.sequence, since })
    const conversation = (await reading)?.(event.turnId, part)
    const messages = patchDanglingCalls(conversation ?? (await readConversation(deps, sessionId, event.turnId, part)))
    const thresholds = thresholdsOf(event)
    return (thresholds === undefined ? messages : applyCompaction(messages, thresholds)).map(withoutImages)
  }
}

/** Written with the event, by the call that it tells of. */
const thresholdsOf = ({ data }: Row): Thresholds | undefined => data.thresholds as Thresholds | undefined

/** What is dropped are whole exchanges, and one begins with its turn's message. */
const partOf = (event: Row) => ({ before: event.sequence, since: thresholdsOf(event)?.droppedBefore ?? 0 })

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
