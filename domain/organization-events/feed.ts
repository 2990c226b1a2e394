import { atOnce } from '../../lib/at-once.ts'
import { rejectOnAbort } from '../../lib/reject-on-abort.ts'
import { sleep } from '../../lib/sleep.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import type { Deps } from '../turns/deps.ts'
import {
  type EventCursor,
  type EventPage,
  matcherOf,
  numberEvents,
  type OrganizationEventFilter,
  readEventPage,
  type StreamedEvent,
} from './read.ts'

/** Events of the organizations that a process follows. It asks Postgres only while somebody follows. */
export type OrganizationFeed = {
  /** Yields an organization's events after the cursor, in order and each once, until the signal aborts. */
  follow(
    from: EventCursor,
    filter: OrganizationEventFilter,
    signal: AbortSignal,
  ): AsyncGenerator<StreamedEvent[], 'aborted'>
}

/** Organization with followers. `latest` is the page that brought the last round to `head`, read once for all of them. */
type Channel = { head: bigint; latest: EventPage | undefined; followers: number; waiting: Set<() => void> }

const POLL_MS = 250
const RETRY_MS = 1000
/** Number of organizations whose events are read at once. */
const READS = 4

export function createOrganizationFeed(deps: Deps, pollMs = POLL_MS): OrganizationFeed {
  const rounds = createRounds(deps, pollMs)
  return {
    follow: async function* (from, filter, signal) {
      const matches = matcherOf(filter)
      const { organizationId } = from
      const channel = rounds.enter(from)
      let cursor = from.after
      try {
        while (!signal.aborted) {
          const { latest, head } = channel
          if (cursor >= head) {
            await nextRound(channel, signal)
            continue
          }
          const isRead = latest !== undefined && latest.after <= cursor
          const page = isRead ? latest : await readPatiently(deps, organizationId, cursor, filter, signal)
          if (page === undefined) return 'aborted'
          const events = page.events.filter((event) => event.sequence > cursor && matches(event))
          cursor = page.through
          if (events.length > 0) yield events
        }
        return 'aborted'
      } finally {
        rounds.leave(organizationId, channel)
      }
    },
  }
}

/** Asks for new events again and again while there are followers. */
function createRounds(deps: Deps, pollMs: number) {
  const channels = new Map<string, Channel>()
  let polling = new AbortController()

  const poll = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      let isBehind = false
      try {
        isBehind = await advance(deps, channels, signal)
      } catch (error) {
        warnRarely(deps.log, { err: (error as Error).message }, "streams wait for an organization's events")
        await sleep(RETRY_MS, signal)
      }
      if (!isBehind) await sleep(pollMs, signal)
    }
  }
  return {
    enter: ({ organizationId, head }: EventCursor): Channel => {
      const isFirst = channels.size === 0
      const channel = channels.get(organizationId) ?? { head, latest: undefined, followers: 0, waiting: new Set() }
      channel.followers++
      channels.set(organizationId, channel)
      if (isFirst) {
        polling = new AbortController()
        void poll(polling.signal)
      }
      return channel
    },
    leave: (organizationId: string, channel: Channel): void => {
      if (--channel.followers === 0) channels.delete(organizationId)
      if (channels.size === 0) polling.abort()
    },
  }
}

/** Numbers and reads what is new in all organizations, and wakes their followers. Returns whether there is more. */
async function advance(deps: Deps, channels: Map<string, Channel>, signal: AbortSignal): Promise<boolean> {
  for (const channel of channels.values()) channel.latest = undefined
  const heads = await numberEvents(deps, [...channels.keys()])
  let isBehind = false
  const isNew = ([id, { head }]: [string, Channel]) => (heads.get(id)?.last ?? 0n) > head
  await atOnce(
    [...channels].filter(isNew),
    READS,
    async ([id, channel]) => {
      const page = await readEventPage(deps, id, channel.head)
      channel.latest = page
      channel.head = page.through
      if (page.through < page.head) isBehind = true
      for (const wake of [...channel.waiting]) wake()
    },
    () => signal.aborted,
  )
  return isBehind
}

/**
 * Reads a page for one follower, and waits while the record is unreadable. Returns undefined once the signal aborts: the
 * end of a stream must not wait for an unavailable Postgres.
 */
async function readPatiently(
  deps: Deps,
  organizationId: string,
  cursor: bigint,
  filter: OrganizationEventFilter,
  signal: AbortSignal,
): Promise<EventPage | undefined> {
  const read = async () => {
    for (;;) {
      try {
        return await readEventPage(deps, organizationId, cursor, filter)
      } catch (error) {
        if (signal.aborted) return undefined
        warnRarely(deps.log, { err: (error as Error).message }, "a stream waits for an organization's events")
        await sleep(RETRY_MS * (0.5 + Math.random()), signal)
      }
    }
  }
  return rejectOnAbort(signal, read()).catch((error: unknown) => {
    if (signal.aborted) return undefined
    throw error
  })
}

const nextRound = ({ waiting }: Channel, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      waiting.delete(done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    waiting.add(done)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
