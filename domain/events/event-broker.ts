import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { isTurnEnd } from '../../contract/events.ts'
import { sleep } from '../../lib/sleep.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import { type LiveEntry, RELAY_STREAMS, readRelayFields, relayKey } from './live-entry.ts'

/** Subscription of one reader to the events of one session. */
export type Subscription = {
  /** Returns the entries since the last call. `missed`: some are missing, and must be read from the record. */
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
  /**
   * Calls `onEnd` when a live entry reports the turn's end; entries may get lost. Returns a function that ends the
   * watch.
   */
  watchTurn(turnId: string, onEnd: () => void): () => void
  close(): Promise<void>
}

type TurnWatches = Map<string, Set<() => void>>
type Subscriber = { cursor: () => number; deliver(entry: LiveEntry): void; invalidate(): void }

type BrokerOptions = {
  /** Redis connection of the broker alone: it blocks in XREAD. */
  reader: Redis
  db: PrismaClient
  log: Logger
  prefix: string
  /** Interval between comparisons of subscribers with the record, in ms: with Redis available, and without. */
  checkMs: number
  checkWithoutRedisMs: number
}

/** Limits of a subscriber's inbox. A subscriber that falls further behind reads the record instead. */
const MAX_INBOX_ENTRIES = 5000
const MAX_INBOX_BYTES = 1024 * 1024
const BLOCK_MS = 2000
/** Number of entries read at once from each relay stream; entries may be large. */
const READ_COUNT = 100
const CONNECTING_MS = 50
const RETRY_MS = 200

/**
 * Creates the event broker, which has one blocking Redis connection for all streams of a process. Redis only saves
 * time: every `checkMs` one query compares all subscribers with the record. A lost entry, or a lost Redis, therefore
 * costs no more than a delay.
 */
export function createEventBroker(options: BrokerOptions): EventBroker {
  const subscribers: Subscribers = new Map()
  const watches: TurnWatches = new Map()
  const stopped = new AbortController()
  const check = createCheck(options, subscribers)
  const reading = readRelay(options, { subscribers, watches }, check, stopped.signal)
  let checkedAt = performance.now()
  let checking = false
  const timer = setInterval(() => {
    // Evaluated at each tick, so that a loss of Redis switches to the interval without Redis at once.
    const dueMs = options.reader.status === 'ready' ? options.checkMs : options.checkWithoutRedisMs
    if (checking || performance.now() - checkedAt < dueMs) return
    checking = true
    void check().finally(() => {
      checking = false
      checkedAt = performance.now()
    })
  }, options.checkWithoutRedisMs / 2)

  return {
    subscribe: (sessionId, cursor) => subscribe(subscribers, sessionId, cursor),
    watchTurn: (turnId, onEnd) => watchTurn(watches, turnId, onEnd),
    close: async () => {
      stopped.abort()
      clearInterval(timer)
      options.reader.disconnect()
      await reading
    },
  }
}

type Subscribers = Map<string, Set<Subscriber>>

function subscribe(subscribers: Subscribers, sessionId: string, cursor: () => number): Subscription {
  const inbox = createInbox()
  const subscription: Subscription = {
    onOverflow: () => {},
    take: inbox.take,
    wait: inbox.wait,
    close: () => {
      peers.delete(own)
      if (peers.size === 0) subscribers.delete(sessionId)
    },
  }
  const own: Subscriber = {
    cursor,
    invalidate: inbox.invalidate,
    deliver: (entry) => {
      if (!inbox.add(entry)) subscription.onOverflow()
    },
  }
  const peers = subscribers.get(sessionId) ?? new Set()
  subscribers.set(sessionId, peers.add(own))
  return subscription
}

type Held = { entries: LiveEntry[]; bytes: number; missed: boolean }
const nothing = (): Held => ({ entries: [], bytes: 0, missed: false })

/** Creates an inbox of entries that wait for their subscriber. All of them are dropped when there are too many. */
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
    /** Adds an entry. Returns false when there were too many, and the inbox is empty now. */
    add(entry: LiveEntry): boolean {
      held.bytes += entry.line.length
      const isFull = held.entries.length >= MAX_INBOX_ENTRIES || held.bytes > MAX_INBOX_BYTES
      if (isFull) invalidate()
      else held.entries.push(entry)
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

function watchTurn(watches: TurnWatches, turnId: string, onEnd: () => void): () => void {
  const peers = watches.get(turnId) ?? new Set()
  watches.set(turnId, peers.add(onEnd))
  return () => {
    peers.delete(onEnd)
    if (peers.size === 0) watches.delete(turnId)
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

type RawEntries = [key: string, entries: [id: string, fields: string[]][]][] | null

async function readRelay(
  { reader, prefix, log }: BrokerOptions,
  readers: Readers,
  check: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const keys = Array.from({ length: RELAY_STREAMS }, (_, index) => relayKey(prefix, index))
  let positions: string[] | undefined
  while (!signal.aborted) {
    if (reader.status !== 'ready') {
      await sleep(CONNECTING_MS, signal)
      continue
    }
    try {
      if (positions === undefined) {
        positions = await lastPositions(reader, keys)
        // Not awaited: Postgres may be slow when Redis is back.
        void check()
      }
      for (const [key, entries] of (await readStreams(reader, keys, positions)) ?? []) {
        for (const [, fields] of entries) dispatch(readers, fields)
        positions[keys.indexOf(key)] = entries.at(-1)?.[0] ?? '0-0'
      }
    } catch (error) {
      if (signal.aborted) return
      // Entries published meanwhile may be lost: start at the end and compare with the record.
      positions = undefined
      await sleep(RETRY_MS, signal)
      warnRarely(log, { err: (error as Error).message }, 'relay interrupted; streams read the record until it is back')
    }
  }
}

const readStreams = async (reader: Redis, keys: string[], positions: string[]): Promise<RawEntries> =>
  (await reader.call('XREAD', 'COUNT', READ_COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', ...keys, ...positions)) as RawEntries

async function lastPositions(reader: Redis, keys: string[]): Promise<string[]> {
  return Promise.all(
    keys.map(async (key) => {
      const [entry] = (await reader.xrevrange(key, '+', '-', 'COUNT', 1)) as [string, string[]][]
      return entry?.[0] ?? '0-0'
    }),
  )
}

type Readers = { subscribers: Subscribers; watches: TurnWatches }

function dispatch({ subscribers, watches }: Readers, fields: string[]): void {
  const [sessionId = '', turnId = ''] = fields
  const peers = subscribers.get(sessionId)
  const watchers = watches.get(turnId)
  if (peers === undefined && watchers === undefined) return
  for (const entry of readRelayFields(fields)) {
    for (const peer of peers ?? []) peer.deliver(entry)
    if (isTurnEnd(entry.type)) for (const onEnd of watchers ?? []) onEnd()
  }
}
