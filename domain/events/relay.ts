import type { WireEvent } from '../../contract/events.ts'
import type { Deps } from '../deps.ts'

/** A fixed number, so that one blocking read covers all sessions. All processes of a deployment must agree on it. */
export const RELAY_STREAMS = 8
/** A subscriber that falls further behind reads Postgres, so the relay stays small. */
const KEPT_ENTRIES = 1000
/** Larger lines ring the bell without their text: Redis holds news, not the record. */
const MAX_LINE_BYTES = 64 * 1024

/** One entry of a relay stream, ids as plain uuids; without `line` the reader takes the event from Postgres. */
export type RelayEntry = {
  sessionId: string
  sequence: number
  type: string
  turnId: string
  id: string
  line?: string
}

export const relayKey = (prefix: string, index: number): string => `${prefix}:relay:${index}`

export const relayIndex = (sessionUuid: string): number =>
  // The last hex digits of a UUIDv7 are random.
  Number.parseInt(sessionUuid.slice(-4), 16) % RELAY_STREAMS

/**
 * Rings the doorbell for recorded events. Never waits and never fails: what does not arrive here is read from
 * Postgres by the hub's next check.
 */
export function publishEvents(deps: Deps, sessionId: string, turnId: string, events: WireEvent[]): void {
  const key = relayKey(deps.redisPrefix, relayIndex(sessionId))
  for (const event of events) {
    const line = JSON.stringify(event)
    const fields = ['s', sessionId, 'q', `${event.sequence}`, 't', event.type, 'u', turnId, 'i', event.id]
    if (Buffer.byteLength(line) <= MAX_LINE_BYTES) fields.push('l', line)
    deps.redis
      .xadd(key, 'MAXLEN', '~', KEPT_ENTRIES, '*', ...fields)
      .catch((error: Error) => deps.log.debug({ err: error.message }, 'relay entry not published'))
  }
}
