/**
 * Number of relay streams. It is fixed, so that one blocking read covers all sessions. All processes of a deployment
 * must agree on it.
 */
export const RELAY_STREAMS = 8
/** Maximum length of a line in Redis. Longer events are sent without their line: Redis holds hints, not the record. */
export const MAX_LINE_LENGTH = 64 * 1024
/** Maximum length of a line for readers in the same process, which are given it as it is. */
export const MAX_OWN_LINE_LENGTH = 512 * 1024

/**
 * Event on the live stream. `sessionId` and `turnId` are plain uuids, `id` is in its form on the wire. With an empty
 * `line` the reader takes the event from Postgres.
 */
export type LiveEntry = {
  sessionId: string
  sequence: number
  type: string
  turnId: string
  id: string
  line: string
}

export const relayKey = (prefix: string, index: number): string => `${prefix}:relay:${index}`

export const relayIndex = (sessionId: string): number =>
  // The last hex digits of a UUIDv7 are random.
  Number.parseInt(sessionId.slice(-4), 16) % RELAY_STREAMS

/** Name of the last field, which tells what process has sent an entry. Releases without it ignore it. */
const ORIGIN = 'origin'

/** Returns the fields of what one publishEvents gives: at least one entry, all of one turn. Leaves out long lines. */
export function toRelayFields(entries: LiveEntry[], origin: string): string[] {
  const { sessionId = '', turnId = '' } = entries[0] ?? {}
  const fields = [sessionId, turnId]
  for (const { sequence, type, id, line } of entries) fields.push(`${sequence}`, type, id, shortLine(line))
  fields.push(ORIGIN, origin)
  return fields
}

const shortLine = (line: string): string => (line.length > MAX_LINE_LENGTH ? '' : line)

/** Reports whether this process has sent the fields. An entry without an origin ends with a line, which is none. */
export const isOwn = (fields: string[], origin: string): boolean => fields.at(-1) === origin

/** Yields the entries of one publishEvents from the fields that a reader of the stream gets. */
export function* readRelayFields(fields: string[]): Generator<LiveEntry> {
  const [sessionId = '', turnId = ''] = fields
  for (let at = 2; at + 3 < fields.length; at += 4) {
    const [sequence, type = '', id = '', line = ''] = fields.slice(at, at + 4)
    yield { sessionId, turnId, sequence: Number(sequence), type, id, line }
  }
}
