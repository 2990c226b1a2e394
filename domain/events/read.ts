import type { Deps } from '../deps.ts'
import { type EventRows, readEventRows, textBefore } from './event-queries.ts'
import type { EventFilter } from './filter.ts'
import { MAX_LINE_LENGTH } from './live-stream.ts'
import { presentEvent, type ReadParts, type StoredEvent } from './present.ts'

/** An event on its way to a client: `line` is the whole event as one line of JSON, `turnId` a uuid. */
export type EventLine = { id: string; type: string; sequence: number; turnId: string; line: string }
/**
 * `through`: everything up to this sequence has been read; undefined when the session is gone. `keepsText`: another reader
 * would have to read text again that this one has.
 */
export type EventPage = { events: EventLine[]; through: number | undefined; hasMore: boolean; keepsText: boolean }
/** Reads the events after a sequence, as many as fit into a page. */
export type EventReader = (after: number) => Promise<EventPage>

export type ReaderOptions = {
  filter?: EventFilter
  /** How many events are looked for at once. */
  batch: number
  /** Whether the record is looked at for the next page already while this one is put together and taken. */
  ahead: boolean
}

/** A page ends with the event that passes this, as clients get it. */
const PAGE_BYTES = 256 * 1024
/**
 * Characters of an unfinished message from which on it is kept for a reader that goes on live. Its next deltas may be too
 * long for the relay, so they will be read here.
 */
const LONG_TEXT = MAX_LINE_LENGTH / 2
const MAX_KEPT_TEXT = 256 * 1024

/**
 * Reads a session's events in order, page by page. One reader serves one pass from old to new: it remembers the
 * text of unfinished messages, so that `accumulated` costs nothing extra from page to page.
 */
export function createEventReader(deps: Deps, sessionId: string, options: ReaderOptions): EventReader {
  const { filter = {}, batch, ahead } = options
  const texts = new Map<string, string>()
  let textsOf: string | null = null
  let wanted = batch
  let position: number | undefined
  let current: (EventRows & { taken: number }) | undefined
  let next: Promise<EventRows> | undefined

  const forget = () => {
    texts.clear()
    current = undefined
    next = undefined
  }
  const look = (after: number) => readEventRows(deps, sessionId, after, wanted, filter)
  const takeNext = async (after: number) => {
    // One that failed while nobody waited for it says nothing about now.
    const taken = { ...((await next?.catch(() => undefined)) ?? (await look(after))), taken: 0 }
    const last = taken.rows.at(-1)
    // Large rows are looked for in small numbers.
    wanted = Math.max(1, Math.min(batch, 2 * (taken.isFull ? taken.rows.length : wanted)))
    next = ahead && taken.hasMore && last !== undefined ? look(last.sequence) : undefined
    next?.catch(() => {})
    return taken
  }

  const isDelta = ({ type }: StoredEvent) => type === 'output.message.delta' || type === 'reason.thinking.delta'
  const textKey = ({ execId, type }: StoredEvent) => `${execId}/${type}`
  /** False when retention has deleted the event since it was read. */
  const findTextBefore = async (event: StoredEvent): Promise<boolean> => {
    const text = await textBefore(deps, event)
    if (text !== undefined) texts.set(textKey(event), text)
    return text !== undefined
  }
  /** No more than the text of one message is remembered. */
  const enterMessage = ({ execId }: StoredEvent) => {
    if (execId !== textsOf) texts.clear()
    textsOf = execId
  }
  const partsOf = (event: StoredEvent): ReadParts => {
    if (isDelta(event)) {
      const accumulated = (texts.get(textKey(event)) ?? '') + String(event.data.delta)
      texts.set(textKey(event), accumulated)
      return { accumulated }
    }
    if (event.type === 'output.message.started') {
      enterMessage(event)
      texts.set(`${event.execId}/output.message.delta`, '')
      texts.set(`${event.execId}/reason.thinking.delta`, '')
    }
    if (event.type === 'output.message.completed') texts.clear()
    return {}
  }

  const read: EventReader = async (after) => {
    try {
      return await readPage(after)
    } catch (error) {
      // What was put together of the page is lost; whoever tries again gets all of it.
      forget()
      throw error
    }
  }
  const readPage: EventReader = async (after) => {
    // Between two reads the follower may have gone on live; what is remembered is then out of date.
    if (after !== position) forget()
    current ??= await takeNext(after)
    const { rows, through, inputOf } = current
    const events: EventLine[] = []
    for (let bytes = 0; bytes <= PAGE_BYTES && current.taken < rows.length; current.taken++) {
      const event = { ...(rows[current.taken] as EventRows['rows'][number]), sessionId }
      if (isDelta(event)) enterMessage(event)
      if (isDelta(event) && !texts.has(textKey(event)) && !(await findTextBefore(event))) {
        // Without what has gone, what comes is another page.
        forget()
        return readPage(after)
      }
      const input = event.type === 'llm.generation' ? await inputOf(event) : undefined
      events.push(toLine(deps, event, partsOf(event), input))
      bytes += events.at(-1)?.line.length ?? 0
    }
    const isTaken = current.taken === rows.length
    const hasMore = !isTaken || current.hasMore
    position = hasMore ? events.at(-1)?.sequence : through
    if (isTaken) current = undefined
    // Whoever goes on live has the texts from there, unless they are too long for it.
    const length = [...texts.values()].reduce((sum, text) => sum + text.length, 0)
    const keepsText = length >= LONG_TEXT && length <= MAX_KEPT_TEXT
    if (!hasMore && !keepsText) texts.clear()
    return { events, through: position, hasMore, keepsText }
  }
  return read
}

/** `input`: the messages of a model call, as they go into its data, which stands last in the line. */
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
