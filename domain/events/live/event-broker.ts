import { isTurnEnd } from '../../../contract/events.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { PrismaClient } from '../../../prisma/generated/client.ts'
import { type LiveEntry, MAX_LINE_LENGTH, MAX_OWN_LINE_LENGTH, readRelayFields } from './live-entry.ts'
import { type RelayOptions, startRelay } from './relay.ts'

/** Subscription of one reader to the events of one session. */
export type Subscription = {
  /** Returns the entries since the last call. `missed`: some are missing and must be read from the record. */
  take(): { entries: LiveEntry[]; missed: boolean }
  /** Called when more entries arrive than the inbox holds. Its entries are dropped; the record has them. */
  onOverflow: () => void
  /** Resolves when there is something to take, the session is gone, or the signal aborts. */
  wait(signal: AbortSignal): Promise<void>
  close(): void
}

export type EventBroker = {
  /**
   * Subscribes to a session. `cursor` returns the subscriber's last sequence, and is called whenever the broker
   * compares with the record.
   */
  subscribe(sessionId: string, cursor: () => number): Subscription
  /** Reports whether a session has a subscriber in this process. */
  isFollowed(sessionId: string): boolean
  /**
   * Calls `onEnd` when a live entry reports the turn's end; entries may get lost. Returns a function that ends the
   * watch.
   */
  watchTurn(turnId: string, onEnd: () => void): () => void
  /**
   * Publishes entries of one turn, in order: to the other processes, and in this one to subscribers and watches in the
   * event loop's next iteration.
   */
  publish(entries: LiveEntry[]): void
  close(): Promise<void>
}

type TurnWatches = Map<string, Set<() => void>>
type Subscriber = { cursor: () => number; deliver(entry: LiveEntry): void; invalidate(): void }

type BrokerOptions = RelayOptions & {
  db: PrismaClient
  /** Interval between comparisons of subscribers with the record, in ms, with and without Redis. */
  checkMs: number
  checkWithoutRedisMs: number
  /** Measures the way of entries through Redis, in ms. */
  onLag?: ((ms: number) => void) | undefined
}

/** Limits of a subscriber's inbox. A subscriber that falls further behind reads the record instead. */
const MAX_INBOX_ENTRIES = 5000
const MAX_INBOX_BYTES = 1024 * 1024
/**
 * Total length of the long lines in an inbox. Beyond it, entries are kept without their lines, which the record has.
 */
const MAX_LONG_LINES_BYTES = MAX_OWN_LINE_LENGTH

/**
 * Creates the event broker. It passes its process's publications to the readers there, and reads other processes'
 * publications through blocking Redis connections. Both only save time: every `checkMs` one query compares all
 * subscribers with the record, so a lost entry or a lost Redis only delays readers.
 */
export function createEventBroker(options: BrokerOptions): EventBroker {
  const subscribers: Subscribers = new Map()
  const watches: TurnWatches = new Map()
  const readers = { subscribers, watches }
  const check = createCheck(options, subscribers)
  const relay = startRelay(options, {
    onEntry: (fields) => dispatch(readers, fields),
    // Not awaited: Postgres may be slow when Redis is back.
    onGap: () => void check(),
    onLag: options.onLag,
  })
  let checkedAt = performance.now()
  let checking = false
  const timer = setInterval(() => {
    // Evaluated at each tick, so that a loss of Redis shortens the interval at once.
    const dueMs = relay.isReading() ? options.checkMs : options.checkWithoutRedisMs
    if (checking || performance.now() - checkedAt < dueMs) return
    checking = true
    void check().finally(() => {
      checking = false
      checkedAt = performance.now()
    })
  }, options.checkWithoutRedisMs / 2)

  return {
    subscribe: (sessionId, cursor) => subscribe(subscribers, sessionId, cursor),
    isFollowed: (sessionId) => subscribers.has(sessionId),
    watchTurn: (turnId, onEnd) => addTo(watches, turnId, onEnd),
    publish: createPublish((publications) => {
      for (const entries of publications) deliver(readers, entries)
      relay.send(publications)
    }),
    close: () => {
      clearInterval(timer)
      return relay.close()
    },
  }
}

type Subscribers = Map<string, Set<Subscriber>>

function subscribe(subscribers: Subscribers, sessionId: string, cursor: () => number): Subscription {
  const inbox = createInbox()
  const close = addTo(subscribers, sessionId, {
    cursor,
    invalidate: inbox.invalidate,
    deliver: (entry) => {
      if (!inbox.add(entry)) subscription.onOverflow()
    },
  })
  const subscription: Subscription = { onOverflow: () => {}, take: inbox.take, wait: inbox.wait, close }
  return subscription
}

/** Adds a member to a key's set. Returns a function that removes it, and that may be called again. */
function addTo<Member>(sets: Map<string, Set<Member>>, key: string, member: Member): () => void {
  const peers = sets.get(key) ?? new Set()
  sets.set(key, peers.add(member))
  return () => {
    if (peers.delete(member) && peers.size === 0) sets.delete(key)
  }
}

type Held = { entries: LiveEntry[]; bytes: number; longBytes: number; missed: boolean }
const nothing = (): Held => ({ entries: [], bytes: 0, longBytes: 0, missed: false })

/** Creates an inbox of entries that wait for their subscriber. An overflow drops all of them. */
function createInbox() {
  let held = nothing()
  let wake = () => {}

  const invalidate = () => {
    held = { ...nothing(), missed: true }
    wake()
  }
  return {
    invalidate,
    take(): ReturnType<Subscription['take']> {
      const { entries, missed } = held
      held = nothing()
      return { entries, missed }
    },
    /**
     * Adds an entry, a long one without its line if too many long lines are waiting. Returns false on overflow, which
     * empties the inbox.
     */
    add(entry: LiveEntry): boolean {
      const { length } = entry.line
      const isLong = length > MAX_LINE_LENGTH && length <= MAX_OWN_LINE_LENGTH
      const fits = !isLong || held.longBytes + length <= MAX_LONG_LINES_BYTES
      if (!isLong) held.bytes += length
      else if (fits) held.longBytes += length
      const isFull = held.entries.length >= MAX_INBOX_ENTRIES || held.bytes > MAX_INBOX_BYTES
      if (isFull) invalidate()
      else held.entries.push(fits ? entry : { ...entry, line: '' })
      wake()
      return !isFull
    },
    async wait(signal: AbortSignal): Promise<void> {
      if (signal.aborted || held.entries.length > 0 || held.missed) return
      const woken = Promise.withResolvers<void>()
      wake = () => woken.resolve()
      const stop = wake
      signal.addEventListener('abort', stop)
      await woken.promise
      wake = () => {}
      signal.removeEventListener('abort', stop)
    },
  }
}

/**
 * Returns a check of all subscribers with one query. It invalidates those whose session has moved on or is gone. Checks
 * never overlap: calls during a check, which may miss the latest state, share the next one.
 */
function createCheck({ db, log }: BrokerOptions, subscribers: Subscribers): () => Promise<void> {
  const check = async () => {
    const ids = [...subscribers.keys()]
    if (ids.length === 0) return
    try {
      const rows = await db.$queryRaw<{ id: string; last: number }[]>`
        SELECT id, last_sequence AS last FROM sessions WHERE id = ANY (${ids}::uuid[])`
      const last = new Map(rows.map((row) => [row.id, row.last]))
      for (const id of ids) {
        const recorded = last.get(id) ?? Number.POSITIVE_INFINITY
        for (const subscriber of subscribers.get(id) ?? []) if (subscriber.cursor() < recorded) subscriber.invalidate()
      }
    } catch (error) {
      warnRarely(log, { err: error }, 'streams could not be compared with the record')
    }
  }
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined
  const begin = () => {
    next = undefined
    current = check().finally(() => {
      current = undefined
    })
    return current
  }
  return () => {
    if (current === undefined) return begin()
    next ??= current.then(begin)
    return next
  }
}

type Readers = { subscribers: Subscribers; watches: TurnWatches }

function dispatch({ subscribers, watches }: Readers, fields: string[]): void {
  const [sessionId = '', turnId = ''] = fields
  if (subscribers.has(sessionId) || watches.has(turnId)) deliver({ subscribers, watches }, readRelayFields(fields))
}

function deliver({ subscribers, watches }: Readers, entries: Iterable<LiveEntry>): void {
  for (const entry of entries) {
    for (const peer of subscribers.get(entry.sessionId) ?? []) peer.deliver(entry)
    if (isTurnEnd(entry.type)) for (const onEnd of watches.get(entry.turnId) ?? []) onEnd()
  }
}

/**
 * Collects the publications of one iteration of the event loop, to wake readers and write to Redis once. An attempt
 * that ends its turn is therefore over before its own watch reports the end.
 */
function createPublish(flush: (publications: LiveEntry[][]) => void): EventBroker['publish'] {
  let publications: LiveEntry[][] = []
  const flushAll = () => {
    const all = publications
    publications = []
    flush(all)
  }
  return (entries) => {
    if (publications.length === 0) setImmediate(flushAll)
    publications.push(entries)
  }
}
