import { sleep } from '../../lib/sleep.ts'
import type { Deps } from '../deps.ts'
import { createEventMatcher, type EventFilter } from './filter.ts'
import { createEventReader, type EventLine, type EventPage, type EventReader } from './read.ts'

export const REPLAY_BATCH = 200
const RETRY_MS = 1000

/**
 * The events of a session after sequence `after`, in order, each once, first from the record and then live, until
 * the signal aborts (the generator returns) or the session is deleted (it returns 'session_deleted').
 *
 * The cursor is the whole state. An entry of the relay at cursor + 1 is passed on as it is, an older one is dropped,
 * and any other case (a jump, a lost Redis, the start) is the same case: read the record from the cursor.
 * `onOverflow` is called when more than 1 MiB waits for a consumer that does not come for it.
 */
export async function* follow(
  deps: Deps,
  sessionId: string,
  after: number,
  filter: EventFilter,
  signal: AbortSignal,
  onOverflow: () => void = () => {},
): AsyncGenerator<EventLine[], 'aborted' | 'session_deleted'> {
  let cursor = after
  let behind = true
  /** Only while there is something to read: most streams are up to date, and a reader is a tenth of what one takes. */
  let read: EventReader | undefined
  const matches = createEventMatcher(filter)
  const inbox = deps.events.broker.subscribe(sessionId, () => cursor)
  // Who is behind reads the record: nothing is lost with what its inbox held.
  inbox.onOverflow = () => {
    if (!behind) onOverflow()
  }
  try {
    while (!signal.aborted) {
      if (behind) {
        read ??= createEventReader(deps, sessionId, { filter, batch: REPLAY_BATCH, ahead: true })
        const page = await unlessAborted(readPatiently(deps, read, cursor, signal), signal)
        if (page === undefined) return 'aborted'
        const { events, through, hasMore, keepsText } = page
        if (through === undefined) return 'session_deleted'
        if (!hasMore && !keepsText) read = undefined
        behind = hasMore
        cursor = Math.max(cursor, through)
        if (events.length > 0) yield events
        continue
      }
      const { entries, missed } = inbox.take()
      if (missed) behind = true
      const ready: EventLine[] = []
      for (const entry of entries) {
        if (entry.sequence <= cursor) continue
        if (entry.sequence !== cursor + 1 || entry.line === '') {
          behind = true
          break
        }
        cursor = entry.sequence
        if (matches(entry)) ready.push(entry)
      }
      if (ready.length > 0) yield ready
      else if (!behind) await inbox.wait(signal)
    }
    return 'aborted'
  } finally {
    inbox.close()
  }
}

/** While the record cannot be read a stream waits: its client would come back sooner, and make it worse. */
async function readPatiently(deps: Deps, read: EventReader, cursor: number, signal: AbortSignal): Promise<EventPage> {
  for (let hasLogged = false; ; hasLogged = true) {
    try {
      return await read(cursor)
    } catch (error) {
      if (signal.aborted) throw error
      if (!hasLogged) deps.log.warn({ err: (error as Error).message }, 'a stream waits for the record')
      await sleep(RETRY_MS * (0.5 + Math.random()), signal)
    }
  }
}

/** A stream that ends does not wait for Postgres, which may be away. Undefined when the signal aborts first. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined)
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
