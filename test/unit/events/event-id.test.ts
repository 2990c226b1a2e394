import { createEventIds } from '../../../domain/events/log/event-id.ts'
import { newUuid } from '../../../domain/kit/ids.ts'

const KEY = new Uint8Array(32).fill(7)
const SESSION = newUuid()
const NOW = 1_800_000_000_000
const ids = createEventIds(KEY)

const flipBit = (id: string, bit: number): string => {
  const bytes = Buffer.from(id.slice('event_'.length), 'hex')
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (0x80 >> (bit & 7))
  return `event_${bytes.toString('hex')}`
}

describe('an event id', () => {
  it('carries its sequence', () => {
    for (const sequence of [1, 2, 255, 65_536, 2 ** 30 - 1, 2 ** 30, 2 ** 31 - 1]) {
      expect(ids.decode(SESSION, ids.encode(SESSION, sequence, NOW))).toBe(sequence)
    }
  })

  it('is a UUIDv7 of its time', () => {
    for (const sequence of [1, 12_345, 2 ** 31 - 1]) {
      const hex = ids.encode(SESSION, sequence, NOW).slice('event_'.length)
      expect(hex).toMatch(/^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/)
      expect(Number.parseInt(hex.slice(0, 12), 16)).toBe(NOW)
    }
  })

  it('is always the same for an event, and different for any other', () => {
    const all = [ids.encode(SESSION, 1, NOW), ids.encode(SESSION, 2, NOW), ids.encode(newUuid(), 1, NOW)]
    expect(ids.encode(SESSION, 1, NOW)).toBe(all[0])
    expect(new Set(all).size).toBe(3)
  })

  it('is not taken for an event of another session, or under another key', () => {
    const id = ids.encode(SESSION, 42, NOW)
    expect(() => ids.decode(newUuid(), id)).toThrow('not the id of an event of this session')
    const others = createEventIds(new Uint8Array(32).fill(8))
    expect(() => others.decode(SESSION, id)).toThrow('not the id of an event of this session')
  })

  it('is refused when any bit of it has changed', () => {
    for (const sequence of [1, 2 ** 31 - 1]) {
      const id = ids.encode(SESSION, sequence, NOW)
      for (let bit = 0; bit < 128; bit++) {
        expect(() => ids.decode(SESSION, flipBit(id, bit))).toThrow('not the id of an event of this session')
      }
    }
  })

  it('is refused in any other form', () => {
    const id = ids.encode(SESSION, 1, NOW)
    for (const wrong of [
      '',
      'event_',
      id.slice(0, -1),
      `${id}0`,
      id.toUpperCase(),
      id.replace('event', 'evt'),
      ` ${id}`,
    ]) {
      expect(() => ids.decode(SESSION, wrong)).toThrow('32 lower-case hex digits')
    }
  })
})
