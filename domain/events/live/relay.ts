import type { Cluster, Redis } from 'ioredis'
import type { Logger } from 'pino'
import { sleep } from '../../../lib/sleep.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { RedisClient } from '../../kit/deps.ts'
import { newUuid } from '../../kit/ids.ts'
import { isOwn, type LiveEntry, RELAY_STREAMS, relayIndex, relayKey, toRelayFields } from './live-entry.ts'

/** Connection of a process to the live streams in Redis, which carry entries to the other processes. */
export type Relay = {
  /** Sends the publications in order, in one write. Never waits and never fails. */
  send(publications: LiveEntry[][]): void
  /** Reports whether the entries of all sessions arrive. */
  isReading(): boolean
  close(): Promise<void>
}

export type RelayOptions = {
  /** Redis connection for short commands. */
  client: RedisClient
  /**
   * Redis connections of the relay alone, which block in XREAD and share the streams. One server needs one. A cluster
   * needs one for each stream: it reads only keys of one slot at once.
   */
  readers: RedisClient[]
  log: Logger
  prefix: string
}

type Listener = {
  /** Called with the fields of each entry that another process has sent. */
  onEntry: (fields: string[]) => void
  /** Called when entries may have been lost. */
  onGap: () => void
  /** Called with the way through Redis of the newest entry that was read, in ms. */
  onLag?: ((ms: number) => void) | undefined
}

/** Number of entries kept in each relay stream. Subscribers that fall further behind read Postgres. */
const KEPT_ENTRIES = 1000
const BLOCK_MS = 2000
/** Number of entries read at once from each relay stream; entries may be large. */
const READ_COUNT = 100
/** Pause between two reads while entries flow, so that many are read at once. */
const PAUSE_MS = 5
const CONNECTING_MS = 50
const RETRY_MS = 200

/** Starts to read the live streams at their ends. */
export function startRelay(options: RelayOptions, listener: Listener): Relay {
  const origin = newUuid()
  const stopped = new AbortController()
  const parts = partsOf(options)
  const reading = parts.map((part) => readPart(part, options.log, origin, listener, stopped.signal))
  return {
    send: (publications) => send(options, origin, publications),
    isReading: () => parts.every(({ reader, positions }) => reader.status === 'ready' && positions !== undefined),
    close: async () => {
      stopped.abort()
      for (const { reader } of parts) reader.disconnect()
      await Promise.all(reading)
    },
  }
}

function send({ client, prefix, log }: RelayOptions, origin: string, publications: LiveEntry[][]): void {
  const sockets = (client.isCluster ? (client as Cluster).nodes('master') : [client as Redis]).map(
    (node) => node.stream,
  )
  for (const socket of sockets) socket?.cork()
  for (const entries of publications) {
    const key = relayKey(prefix, relayIndex(entries[0]?.sessionId ?? ''))
    client
      .xadd(key, 'MAXLEN', '~', KEPT_ENTRIES, '*', ...toRelayFields(entries, origin))
      .catch((error: Error) => log.debug({ err: error.message }, 'events not published'))
  }
  for (const socket of sockets) socket?.uncork()
}

type RawEntries = [key: string, entries: [id: string, fields: string[]][]][]

/** A reader, its streams, and where it has come to in them; undefined while it does not read. */
type Part = { reader: RedisClient; keys: string[]; positions?: string[] | undefined }

function partsOf({ readers, prefix }: RelayOptions): Part[] {
  const keys = Array.from({ length: RELAY_STREAMS }, (_, index) => relayKey(prefix, index))
  return readers.map((reader, at) => ({ reader, keys: keys.filter((_, index) => index % readers.length === at) }))
}

async function readPart(
  part: Part,
  log: Logger,
  origin: string,
  { onEntry, onGap, onLag }: Listener,
  signal: AbortSignal,
): Promise<void> {
  const { reader, keys } = part
  while (!signal.aborted) {
    if (reader.status !== 'ready') {
      await sleep(CONNECTING_MS, signal)
      continue
    }
    try {
      if (part.positions === undefined) {
        part.positions = await lastPositions(reader, keys)
        onGap()
      }
      const { positions } = part
      const streams = await readStreams(reader, keys, positions)
      for (const [key, entries] of streams) {
        // Readers in this process have its own entries already.
        for (const [, fields] of entries) if (!isOwn(fields, origin)) onEntry(fields)
        positions[keys.indexOf(key)] = entries.at(-1)?.[0] ?? '0-0'
        onLag?.(Date.now() - Number.parseInt(entries.at(-1)?.[0] ?? '', 10))
      }
      const isBehind = streams.some(([, entries]) => entries.length === READ_COUNT)
      if (streams.length > 0 && !isBehind) await sleep(PAUSE_MS, signal)
    } catch (error) {
      if (signal.aborted) return
      // Entries published meanwhile may be lost: start at the end and compare with the record.
      part.positions = undefined
      await sleep(RETRY_MS, signal)
      warnRarely(log, { err: (error as Error).message }, 'relay interrupted; streams read the record until it is back')
    }
  }
}

const readStreams = async (reader: RedisClient, keys: string[], positions: string[]): Promise<RawEntries> =>
  ((await reader.call('XREAD', 'COUNT', READ_COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', ...keys, ...positions)) ??
    []) as RawEntries

async function lastPositions(reader: RedisClient, keys: string[]): Promise<string[]> {
  return Promise.all(
    keys.map(async (key) => {
      const [entry] = (await reader.xrevrange(key, '+', '-', 'COUNT', 1)) as [string, string[]][]
      return entry?.[0] ?? '0-0'
    }),
  )
}
