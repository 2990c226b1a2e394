import type { WireEvent } from '../../../contract/events.ts'
import type { Deps } from '../deps.ts'
import { type LiveEntry, MAX_LINE_LENGTH, MAX_OWN_LINE_LENGTH } from './live-entry.ts'

/**
 * Publishes recorded events to the readers of this process and, through the live stream, of all others. Never waits and
 * never fails: readers find lost events in Postgres at the broker's next check.
 */
export function publishEvents(deps: Deps, sessionId: string, turnId: string, events: WireEvent[]): void {
  if (events.length === 0) return
  deps.metrics?.recorded(events)
  deps.tracing.recorded(turnId, events)
  const { broker } = deps.events
  const maxLength = broker.isFollowed(sessionId) ? MAX_OWN_LINE_LENGTH : MAX_LINE_LENGTH
  const entries = events.map((event): LiveEntry => {
    const { sequence, type, id } = event
    return { sessionId, turnId, sequence, type, id, line: toLine(event, maxLength) }
  })
  broker.publish(entries)
}

/**
 * Publishes the deletion of a session as an entry that sorts after all others. It makes followers read the record,
 * where the session is gone. If it is lost, they notice at the broker's next check.
 */
export function publishDeletion(deps: Deps, sessionId: string): void {
  const noTurn = '00000000-0000-0000-0000-000000000000'
  const end = { sequence: Number.MAX_SAFE_INTEGER, type: 'session.deleted', id: '', line: '' }
  deps.events.broker.publish([{ sessionId, turnId: noTurn, ...end }])
}

/** Returns the line for clients, or '' if it is longer than its readers accept. */
function toLine(event: WireEvent, maxLength: number): string {
  if (isLongGeneration(event, maxLength) || isLongDelta(event)) return ''
  const line = JSON.stringify(event)
  return line.length <= maxLength ? line : ''
}

/** Reports whether the text so far is too long for a stream. Serializing it for each delta would be slow. */
const isLongDelta = ({ data }: WireEvent): boolean => 'accumulated' in data && data.accumulated.length > MAX_LINE_LENGTH

/** Reports whether a conversation is too long for a stream, without serializing all of it first. */
function isLongGeneration(event: WireEvent, maxLength: number): boolean {
  if (!('messages' in event.data)) return false
  let length = 0
  for (const message of event.data.messages) {
    for (const part of message.content) if (part.type === 'text') length += part.text.length
    if (length > maxLength) return true
  }
  return false
}
