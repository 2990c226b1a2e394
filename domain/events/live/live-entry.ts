/**
 * Number of relay streams, fixed so that one blocking read covers all sessions, or in a cluster one for each stream. All
 * processes of a deployment must agree on it.
 */
export const RELAY_STREAMS = 8
/** Maximum length of a line in Redis. Longer events are sent without their line: Redis holds hints, not the record. */
export const MAX_LINE_LENGTH = 64 * 1024
/** Maximum length of a line for readers in the same process, which receive it without a copy. */
export const MAX_OWN_LINE_LENGTH = 512 * 1024

/**
 * Event on the live stream. `sessionId` and `turnId` are plain uuids, `id` has its wire form. If `line` is empty, the
 * reader takes the event from Postgres.
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

/** Name of the last field, which identifies the sending process. Releases without it ignore it. */
const ORIGIN = 'origin'

/** Converts one call of publishEvents to fields: at least one entry, all of one turn. Leaves out long lines. */
export function toRelayFields(entries: LiveEntry[], origin: string): string[] {
  const { sessionId = '', turnId = '' } = entries[0] ?? {}
  const fields = [sessionId, turnId]
  for (const { sequence, type, id, line } of entries) fields.push(`${sequence}`, type, id, shortLine(line))
  fields.push(ORIGIN, origin)
  return fields
}

const shortLine = (line: string): string => (line.length > MAX_LINE_LENGTH ? '' : line)

/**
 * Reports whether this process sent the fields. Without an origin, the last field is a line, which equals no origin.
 */
export const isOwn = (fields: string[], origin: string): boolean => fields.at(-1) === origin

/** Yields the entries of one call of publishEvents from the fields of the stream. */
export function* readRelayFields(fields: string[]): Generator<LiveEntry> {
  const [sessionId = '', turnId = ''] = fields
  for (let at = 2; at + 3 < fields.length; at += 4) {
    const [sequence, type = '', id = '', line = ''] = fields.slice(at, at + 4)
    yield { sessionId, turnId, sequence: Number(sequence), type, id, line }
  }
}
