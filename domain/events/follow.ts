import type { Deps } from '../deps.ts'
import { type EventFilter, wants } from './filter.ts'
import { createEventReader, type EventLine } from './read.ts'

export const REPLAY_BATCH = 200

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
  const read = createEventReader(deps, sessionId, { filter, batch: REPLAY_BATCH, ahead: true })
  const inbox = deps.hub.subscribe(sessionId, () => cursor)
  // Who is behind reads the record: nothing is lost with what its inbox held.
  inbox.onOverflow = () => {
    if (!behind) onOverflow()
  }
  try {
    while (!signal.aborted) {
      if (behind) {
        const page = await unlessAborted(read(cursor), signal)
        if (page === undefined) return 'aborted'
        const { events, through, hasMore } = page
        if (through === undefined) return 'session_deleted'
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
        if (wants(filter, entry.type)) ready.push(entry)
      }
      if (ready.length > 0) yield ready
      else if (!behind) await inbox.wait(signal)
    }
    return 'aborted'
  } finally {
    inbox.close()
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
