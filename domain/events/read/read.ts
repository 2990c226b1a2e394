import type { Deps } from '../deps.ts'
import { MAX_LINE_LENGTH } from '../live/live-entry.ts'
import { presentEvent, type ReadParts, type StoredEvent } from '../log/present.ts'
import { type EventRows, type Row, readEventRows } from './event-queries.ts'
import type { EventFilter } from './filter.ts'
import { createMessageTexts, type MessageTexts } from './message-texts.ts'

/** Event as sent to a client. `line` is the whole event as one line of JSON, `turnId` a uuid. */
export type EventLine = { id: string; type: string; sequence: number; turnId: string; line: string }
/**
 * Page of events. `through`: everything up to this sequence has been read; undefined if the session is gone.
 * `keepsText`: this reader holds text that another reader would have to read again.
 */
export type EventPage = { events: EventLine[]; through: number | undefined; hasMore: boolean; keepsText: boolean }
/** Reads the events after a sequence, up to the size of a page. */
export type EventReader = (after: number) => Promise<EventPage>

/**
 * Returns a function that returns the messages of each llm.generation among the rows, as a JSON array. They are stored
 * once, in their own events, so the conversation module computes them and the log only adds the text to the line.
 */
export type ExpandGenerations = (deps: Deps, sessionId: string, rows: Row[]) => (call: Row) => Promise<string>

export type ReaderOptions = {
  filter?: EventFilter
  expand: ExpandGenerations
  /** Number of events read from the record at once. */
  batch: number
  /** True to read the next page from the record while this one is assembled and taken. */
  ahead: boolean
}

/** Size of a page as sent to clients. The event that exceeds it is the page's last. */
const PAGE_BYTES = 256 * 1024
/**
 * Length above which the text of an unfinished message is kept for a reader that goes live: its next deltas may be too
 * long for the live stream, and are then read here.
 */
const LONG_TEXT = MAX_LINE_LENGTH / 2
const MAX_KEPT_TEXT = 256 * 1024

/**
 * Creates a reader of a session's events, in order and page by page. One reader serves one pass from old to new. It
 * remembers the text of unfinished messages, so that pages need not read it again for `accumulated`.
 */
export function createEventReader(deps: Deps, sessionId: string, options: ReaderOptions): EventReader {
  const texts = createMessageTexts(deps)
  const source = createRowSource(deps, sessionId, options)
  let position: number | undefined
  let current: RowBuffer | undefined

  const forget = () => {
    texts.clear()
    source.forget()
    current = undefined
  }
  const readPage: EventReader = async (after) => {
    // Between two reads the follower may have gone live, which makes the remembered state stale.
    if (after !== position) forget()
    current ??= await source.take(after)
    const buffer = current
    const events = await takeLines(deps, buffer, texts)
    if (events === undefined) {
      // An event has been deleted, so the page has to be assembled anew.
      forget()
      return readPage(after)
    }
    if (buffer.taken === buffer.rows.length) current = undefined
    const hasMore = current !== undefined || buffer.hasMore
    position = hasMore ? events.at(-1)?.sequence : buffer.through
    // A follower that goes live gets the texts there, unless they are too long for the live stream.
    const keepsText = isLong(texts.length())
    if (!hasMore && !keepsText) texts.clear()
    return { events, through: position, hasMore, keepsText }
  }
  return async (after) => {
    try {
      return await readPage(after)
    } catch (error) {
      // The partial page is lost; a retry reads all of it.
      forget()
      throw error
    }
  }
}

const isLong = (characters: number): boolean => characters >= LONG_TEXT && characters <= MAX_KEPT_TEXT

/** Rows of the record. The first `taken` have been passed on. */
type RowBuffer = EventRows & { sessionId: string; taken: number; inputOf(call: Row): Promise<string> }

/**
 * Creates a source of rows of the record. It reads few rows at once if they are large, and with `ahead` reads the next
 * ones before they are requested.
 */
function createRowSource(deps: Deps, sessionId: string, { filter = {}, expand, batch, ahead }: ReaderOptions) {
  let wanted = batch
  let next: Promise<EventRows> | undefined
  const read = (after: number) => readEventRows(deps, sessionId, after, wanted, filter)
  return {
    async take(after: number): Promise<RowBuffer> {
      // A failed read ahead is repeated.
      const found = (await next?.catch(() => undefined)) ?? (await read(after))
      const last = found.rows.at(-1)
      wanted = Math.max(1, Math.min(batch, 2 * (found.isFull ? found.rows.length : wanted)))
      next = ahead && found.hasMore && last !== undefined ? read(last.sequence) : undefined
      next?.catch(() => {})
      return { ...found, sessionId, taken: 0, inputOf: expand(deps, sessionId, found.rows) }
    },
    forget(): void {
      next = undefined
    },
  }
}

/**
 * Takes the next lines of a buffer, up to the size of a page. Returns undefined if an event has been deleted since it was
 * read.
 */
async function takeLines(deps: Deps, buffer: RowBuffer, texts: MessageTexts): Promise<EventLine[] | undefined> {
  const { rows, sessionId } = buffer
  const lines: EventLine[] = []
  for (let bytes = 0; bytes <= PAGE_BYTES && buffer.taken < rows.length; buffer.taken++) {
    const event = { ...(rows[buffer.taken] as Row), sessionId }
    let parts = texts.partsOf(event)
    if (parts === undefined && (await texts.find(event))) parts = texts.partsOf(event)
    if (parts === undefined) return undefined
    const input = event.type === 'llm.generation' ? await buffer.inputOf(event) : undefined
    const line = toLine(deps, event, parts, input)
    lines.push(line)
    bytes += line.line.length
  }
  return lines
}

/** Serializes an event. `input` has the messages of a model call, appended to its data, the line's last field. */
function toLine(deps: Deps, event: StoredEvent, parts: ReadParts, input: string | undefined): EventLine {
  const presented = presentEvent(deps.events, event, parts)
  const line = JSON.stringify(presented)
  return {
    id: presented.id,
    type: event.type,
    sequence: event.sequence,
    turnId: event.turnId,
    line: input === undefined ? line : `${line.slice(0, -2)},"messages":${input}}}`,
  }
}
