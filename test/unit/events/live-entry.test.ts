import { isOwn, type LiveEntry, readRelayFields, toRelayFields } from '../../../domain/events/live/live-entry.ts'

const place = { sessionId: 'session', turnId: 'turn' }
const entries: LiveEntry[] = [
  { ...place, sequence: 7, type: 'turn.started', id: 'event_7', line: '{}' },
  { ...place, sequence: 8, type: 'output.message.delta', id: 'event_8', line: '' },
]
/** As releases write them that know no origin. */
const WITHOUT_ORIGIN = [
  'session',
  'turn',
  '7',
  'turn.started',
  'event_7',
  '{}',
  '8',
  'output.message.delta',
  'event_8',
  '',
]

/** Reads fields as releases do that know no origin: pairs of names and values follow in fours. */
function readWithoutOrigin(fields: string[]): string[][] {
  const found: string[][] = []
  for (let at = 2; at + 3 < fields.length; at += 4) found.push(fields.slice(at, at + 4))
  return found
}

describe('the fields of the live stream', () => {
  it('hold the entries that were published', () => {
    expect([...readRelayFields(toRelayFields(entries, 'here'))]).toEqual(entries)
  })

  it('are read with the origin by the release before, and without it by this one', () => {
    expect(readWithoutOrigin(toRelayFields(entries, 'here'))).toEqual(readWithoutOrigin(WITHOUT_ORIGIN))
    expect([...readRelayFields(WITHOUT_ORIGIN)]).toEqual(entries)
  })

  it('are known by the process that published them, and by no other', () => {
    expect(isOwn(toRelayFields(entries, 'here'), 'here')).toBe(true)
    expect(isOwn(toRelayFields(entries, 'there'), 'here')).toBe(false)
    expect(isOwn(WITHOUT_ORIGIN, 'here')).toBe(false)
  })
})
