import { sleep } from '../../../lib/sleep.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { Deps } from '../deps.ts'
import type { Subscription } from '../live/event-broker.ts'
import type { LiveEntry } from '../live/live-entry.ts'
import { createEventMatcher, type EventFilter } from './filter.ts'
import { createEventReader, type EventLine, type EventPage, type EventReader, type ExpandGenerations } from './read.ts'

export const REPLAY_BATCH = 200
const RETRY_MS = 1000

export type FollowOptions = {
  filter?: EventFilter
  expand: ExpandGenerations
  /** Called when the inbox overflows because the consumer does not take live events. */
  onOverflow?: (() => void) | undefined
}

/** State of a follower. It reads the record while it is behind, otherwise its inbox. */
type Position = { cursor: number; isBehind: boolean }

/**
 * Yields a session's events after sequence `after`, in order and each once: first from the record, then live. Returns
 * 'aborted' when the signal aborts, or 'session_deleted' when the session is gone.
 *
 * The cursor is the whole state. A live entry at cursor + 1 is passed on as it is, an older one is dropped. Any other
 * case (a gap, a lost Redis, the start) is the same case: read the record from the cursor.
 */
export async function* follow(
  deps: Deps,
  sessionId: string,
  after: number,
  { filter = {}, expand, onOverflow = () => {} }: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<EventLine[], 'aborted' | 'session_deleted'> {
  const position: Position = { cursor: after, isBehind: true }
  let how: 'live' | 'replayed' = 'replayed'
  /**
   * Reader of the record, kept only while there is something to read. Most streams are up to date, and a reader takes a
   * tenth of a stream's memory.
   */
  let read: EventReader | undefined
  const matches = createEventMatcher(filter)
  const inbox = deps.events.broker.subscribe(sessionId, () => position.cursor)
  // A follower that is behind reads the record, so it loses nothing with its inbox.
  inbox.onOverflow = () => {
    if (!position.isBehind) onOverflow()
  }
  try {
    while (!signal.aborted) {
      if (position.isBehind) {
        read ??= createEventReader(deps, sessionId, { filter, expand, batch: REPLAY_BATCH, ahead: true })
        const page = await unlessAborted(readPatiently(deps, read, position.cursor, signal), signal)
        if (page === undefined) return 'aborted'
        if (page.through === undefined) return 'session_deleted'
        if (!page.hasMore && !page.keepsText) read = undefined
        position.isBehind = page.hasMore
        position.cursor = Math.max(position.cursor, page.through)
        if (page.events.length > 0) {
          deps.metrics?.sent(page.events, how)
          yield page.events
        }
        if (!page.hasMore) how = 'live'
        continue
      }
      const ready = takeInOrder(inbox, position).filter(matches)
      if (ready.length > 0) {
        deps.metrics?.sent(ready, how)
        yield ready
      } else if (!position.isBehind) await inbox.wait(signal)
    }
    return 'aborted'
  } finally {
    inbox.close()
  }
}

/** Takes the entries that follow the cursor, and advances it. A missed entry puts the follower behind. */
function takeInOrder(inbox: Subscription, position: Position): LiveEntry[] {
  const { entries, missed } = inbox.take()
  if (missed) position.isBehind = true
  const taken: LiveEntry[] = []
  for (const entry of entries) {
    if (entry.sequence <= position.cursor) continue
    if (entry.sequence !== position.cursor + 1 || entry.line === '') {
      position.isBehind = true
      break
    }
    position.cursor = entry.sequence
    taken.push(entry)
  }
  return taken
}

/**
 * Reads a page, and waits while the record is unreadable. Ending the stream would make its client reconnect, and make
 * it worse.
 */
async function readPatiently(deps: Deps, read: EventReader, cursor: number, signal: AbortSignal): Promise<EventPage> {
  for (;;) {
    try {
      return await read(cursor)
    } catch (error) {
      if (signal.aborted) throw error
      warnRarely(deps.log, { err: (error as Error).message }, 'a stream waits for the record')
      await sleep(RETRY_MS * (0.5 + Math.random()), signal)
    }
  }
}

/**
 * Settles like `work`, or resolves to undefined if the signal aborts first: the end of a stream must not wait for an
 * unavailable Postgres.
 */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined)
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
