import type { WireEvent } from '../../contract/events.ts'
import type { Deps } from '../deps.ts'
import { relayIndex, relayKey } from './live-entry.ts'

/**
 * Number of entries kept in each relay stream. It can be small, because a subscriber that falls further behind reads
 * Postgres.
 */
const KEPT_ENTRIES = 1000
/**
 * Maximum length of a published line. Longer events are published without their line: Redis holds hints, not the
 * record.
 */
export const MAX_LINE_LENGTH = 64 * 1024

/**
 * Publishes recorded events to the live stream. Never waits and never fails: what does not arrive is read from Postgres
 * after the broker's next check.
 */
export function publishEvents(deps: Deps, sessionId: string, turnId: string, events: WireEvent[]): void {
  if (events.length === 0) return
  const fields = [sessionId, turnId]
  for (const event of events) {
    fields.push(`${event.sequence}`, event.type, event.id, relayLine(event))
  }
  xadd(deps, fields)
}

/**
 * Publishes the deletion of a session, as an entry that comes after every other. It makes followers read the record,
 * where the session is gone. If it is lost, they notice at the broker's next check.
 */
export function publishDeletion(deps: Deps, sessionId: string): void {
  const noTurn = '00000000-0000-0000-0000-000000000000'
  xadd(deps, [sessionId, noTurn, `${Number.MAX_SAFE_INTEGER}`, 'session.deleted', '', ''])
}

function xadd(deps: Deps, fields: string[]): void {
  const [sessionId = ''] = fields
  deps.redis.client
    .xadd(relayKey(deps.redis.prefix, relayIndex(sessionId)), 'MAXLEN', '~', KEPT_ENTRIES, '*', ...fields)
    .catch((error: Error) => deps.log.debug({ err: error.message }, 'events not published'))
}

function relayLine(event: WireEvent): string {
  if (isLongGeneration(event)) return ''
  const line = JSON.stringify(event)
  return line.length <= MAX_LINE_LENGTH ? line : ''
}

/** Reports whether a conversation is too long for the live stream, without serializing all of it first. */
function isLongGeneration(event: WireEvent): boolean {
  if (!('messages' in event.data)) return false
  let length = 0
  for (const message of event.data.messages) {
    for (const part of message.content) if (part.type === 'text') length += part.text.length
    if (length > MAX_LINE_LENGTH) return true
  }
  return false
}
