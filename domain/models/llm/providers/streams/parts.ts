import { isRecord } from '../../../../../lib/is-record.ts'
import { createEventReader } from './events.ts'
import { type Json, type Part, type StreamReader, Unreadable } from './reader.ts'

/** Data with which OpenAI's protocols end a stream. */
const DONE = '[DONE]'

/** Reads the parts of an answer from its body. Text that arrives together comes as one part. */
export async function* readParts(
  body: ReadableStream<Uint8Array> | null,
  reader: StreamReader,
): AsyncGenerator<Part, void> {
  if (body === null) return
  const events = createEventReader()
  try {
    for await (const piece of body) for (const part of joined(events.read(piece), reader)) yield part
    yield* joined(events.end(), reader)
    yield* reader.end()
  } finally {
    events.close()
  }
}

/** Returns the parts of events in their order. Throws only after the parts of the events before a malformed one. */
function* joined(events: string[], reader: StreamReader): Iterable<Part> {
  let last: Part | undefined
  try {
    for (const data of events) {
      // Empty data keeps a connection alive.
      if (data === DONE || data === '') continue
      for (const part of reader.read(parse(data))) {
        const both = last && join(last, part)
        if (both === undefined && last !== undefined) yield last
        last = both ?? part
      }
    }
  } catch (error) {
    if (last !== undefined) yield last
    throw error
  }
  if (last !== undefined) yield last
}

/** Joins two pieces of the same text. Undefined for other parts. */
function join(last: Part, part: Part): Part | undefined {
  if (!('delta' in last && 'delta' in part) || last.type !== part.type || last.id !== part.id) return undefined
  if (last.providerMetadata !== undefined || part.providerMetadata !== undefined) return undefined
  return { ...last, delta: last.delta + part.delta }
}

function parse(data: string): Json {
  const event = parseOrUndefined(data) ?? parseOrUndefined(data.replaceAll(NO_NUMBER, ':null'))
  if (isRecord(event)) return event
  throw new Unreadable('data that is not an object')
}

/** Words that Python's json module writes for numbers that JSON does not have. */
const NO_NUMBER = /:\s*(?:NaN|-?Infinity)(?=\s*[,}])/g

function parseOrUndefined(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
