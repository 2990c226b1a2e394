import { sleep } from '../../lib/sleep.ts'
import type { Deps } from '../deps.ts'
import type { Subscription } from './event-broker.ts'
import { createEventMatcher, type EventFilter } from './filter.ts'
import type { LiveEntry } from './live-entry.ts'
import { createEventReader, type EventLine, type EventPage, type EventReader, type ExpandGenerations } from './read.ts'

export const REPLAY_BATCH = 200
const RETRY_MS = 1000

export type FollowOptions = {
  filter?: EventFilter
  expand: ExpandGenerations
  /** Called when more than 1 MiB waits for a consumer that does not come for it. */
  onOverflow?: (() => void) | undefined
}

/** Where a follower is; one that is behind reads the record, any other takes what its inbox holds. */
type Position = { cursor: number; isBehind: boolean }

/**
 * The events of a session after sequence `after`, in order, each once, first from the record and then live, until
 * the signal aborts (the generator returns) or the session is deleted (it returns 'session_deleted').
 *
 * The cursor is the whole state. An entry of the relay at cursor + 1 is passed on as it is, an older one is dropped,
 * and any other case (a jump, a lost Redis, the start) is the same case: read the record from the cursor.
 */
export async function* follow(
  deps: Deps,
  sessionId: string,
  after: number,
  { filter = {}, expand, onOverflow = () => {} }: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<EventLine[], 'aborted' | 'session_deleted'> {
  const position: Position = { cursor: after, isBehind: true }
  /** Only while there is something to read: most streams are up to date, and a reader is a tenth of what one takes. */
  let read: EventReader | undefined
  const matches = createEventMatcher(filter)
  const inbox = deps.events.broker.subscribe(sessionId, () => position.cursor)
  // Who is behind reads the record: nothing is lost with what its inbox held.
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
        if (page.events.length > 0) yield page.events
        continue
      }
      const ready = takeInOrder(inbox, position).filter(matches)
      if (ready.length > 0) yield ready
      else if (!position.isBehind) await inbox.wait(signal)
    }
    return 'aborted'
  } finally {
    inbox.close()
  }
}

/** The entries that stand next to the cursor, which moves with them; a follower that misses one is behind from then on. */
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
