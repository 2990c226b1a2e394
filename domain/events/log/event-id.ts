import { hash } from 'node:crypto'
import { invalid } from '../../kit/errors.ts'
import { toId } from '../../kit/ids.ts'

/**
 * Codec of event ids. An id is a UUIDv7 that contains its event's place, so that a cursor needs no look-up and outlives
 * the event:
 *
 *     48 bits  unix time in ms          (required by UUIDv7)
 *      4 bits  version 7
 *     12 bits  sequence, high part
 *      2 bits  variant
 *     20 bits  sequence, low part
 *     42 bits  check
 *
 * The ids of a session therefore sort like its events. The check is a keyed hash of session, sequence and time. It
 * tells a real id from an invented one or one of another session, and protects nothing else.
 */
export type EventIds = {
  encode(sessionId: string, sequence: number, tsMs: number): string
  /**
   * Returns the sequence of an `event_<hex>` id. Throws `invalid`, naming `field`, for a malformed id or another
   * session's.
   */
  decode(sessionId: string, id: string, field?: string): number
}

const LOW_BITS = 20
const CHECK_BITS = 42n

export function createEventIds(key: Uint8Array): EventIds {
  const prefix = Buffer.from(key).toString('hex')
  // Length extension is impossible without an HMAC: the key has a fixed length, and most of the digest is omitted.
  const check = (sessionId: string, sequence: number, tsMs: number): Buffer =>
    hash('sha256', `${prefix}/${sessionId}/${sequence}/${tsMs}`, 'buffer')

  const encode = (sessionId: string, sequence: number, tsMs: number): string => {
    const digest = check(sessionId, sequence, tsMs)
    const bytes = Buffer.alloc(16)
    bytes.writeUIntBE(tsMs, 0, 6)
    bytes.writeUInt16BE(0x7000 | (sequence >>> LOW_BITS), 6)
    const low = BigInt(sequence % 2 ** LOW_BITS) << CHECK_BITS
    bytes.writeBigUInt64BE((0b10n << 62n) | low | (digest.readBigUInt64BE(0) >> (64n - CHECK_BITS)), 8)
    return toId('event', bytes.toString('hex'))
  }

  const decode = (sessionId: string, id: string, field = 'since_id'): number => {
    if (!/^event_[0-9a-f]{32}$/.test(id)) throw invalid(`${field}: must be event_ followed by 32 lower-case hex digits`)
    const bytes = Buffer.from(id.slice('event_'.length), 'hex')
    const high = bytes.readUInt16BE(6) & 0x0fff
    const low = Number((bytes.readBigUInt64BE(8) >> CHECK_BITS) & 0xfffffn)
    const sequence = high * 2 ** LOW_BITS + low
    const expected = encode(sessionId, sequence, bytes.readUIntBE(0, 6))
    if (expected !== id) throw invalid(`${field}: is not the id of an event of this session`)
    return sequence
  }

  return { encode, decode }
}
