/**
 * Number of relay streams. It is fixed, so that one blocking read covers all sessions. All processes of a deployment
 * must agree on it.
 */
export const RELAY_STREAMS = 8
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

/** Yields the entries of one publishEvents from the fields that a reader of the stream gets. */
export function* readRelayFields(fields: string[]): Generator<LiveEntry> {
  const [sessionId = '', turnId = ''] = fields
  for (let at = 2; at + 3 < fields.length; at += 4) {
    const [sequence, type = '', id = '', line = ''] = fields.slice(at, at + 4)
    yield { sessionId, turnId, sequence: Number(sequence), type, id, line }
  }
}
