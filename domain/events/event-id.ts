import { hash } from 'node:crypto'
import { invalid } from '../errors.ts'
import { toUuid } from '../ids.ts'

/**
 * An event id is a UUIDv7 that carries its event's place, so that a cursor needs no look-up and outlives the event:
 *
 *     48 bits  unix time in ms          (what UUIDv7 asks for)
 *      4 bits  version 7
 *     12 bits  check, high part
 *      2 bits  variant
 *     32 bits  sequence
 *     30 bits  check, low part
 *
 * The check is a keyed hash of session, sequence and time. It tells an id of another session, or an invented one,
 * from a real one; it protects nothing else.
 */
export type EventIds = {
  encode(sessionUuid: string, sequence: number, tsMs: number): string
  /** The sequence of an `event_<hex>` id. Throws `invalid` for one that is malformed or not of this session. */
  decode(sessionUuid: string, id: string): number
}

export function createEventIds(key: Uint8Array): EventIds {
  const prefix = Buffer.from(key).toString('hex')
  // A key of fixed length in front, and most of the digest left out: no HMAC is needed to keep it from being extended.
  const check = (sessionUuid: string, sequence: number, tsMs: number): Buffer =>
    hash('sha256', `${prefix}/${sessionUuid}/${sequence}/${tsMs}`, 'buffer')

  const encode = (sessionUuid: string, sequence: number, tsMs: number): string => {
    const digest = check(sessionUuid, sequence, tsMs)
    const bytes = Buffer.alloc(16)
    bytes.writeUIntBE(tsMs, 0, 6)
    bytes.writeUInt16BE(0x7000 | (digest.readUInt16BE(0) & 0x0fff), 6)
    // Variant bits 10, the sequence's 32 bits, then 30 bits of the check.
    const tail = (0b10n << 62n) | (BigInt(sequence) << 30n) | BigInt(digest.readUInt32BE(2) >>> 2)
    bytes.writeBigUInt64BE(tail, 8)
    return `event_${bytes.toString('hex')}`
  }

  const decode = (sessionUuid: string, id: string): number => {
    if (!/^event_[0-9a-f]{32}$/.test(id)) throw invalid('since_id must be event_ followed by 32 lower-case hex digits')
    const bytes = Buffer.from(toUuid(id).replaceAll('-', ''), 'hex')
    const sequence = Number((bytes.readBigUInt64BE(8) >> 30n) & 0xffffffffn)
    const expected = encode(sessionUuid, sequence, bytes.readUIntBE(0, 6))
    if (expected !== id) throw invalid('since_id is not the id of an event of this session')
    return sequence
  }

  return { encode, decode }
}
