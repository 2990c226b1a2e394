import type { SessionId } from '../../contract/ids.ts'
import type { Actor } from '../actor.ts'
import { expandGenerations } from '../conversation/expand-generations.ts'
import type { Deps } from '../deps.ts'
import { invalid } from '../errors.ts'
import type { EventFilter } from '../events/filter.ts'
import { follow } from '../events/follow.ts'
import { listEvents } from '../events/list.ts'
import type { EventLine } from '../events/read.ts'
import { requireSession } from './read.ts'

/** A session, and the sequence after which a client goes on reading its events. */
export type SessionCursor = { sessionId: string; after: number }

/** The session and the sequence after which a client wants to go on: 0 without a cursor. */
export async function openCursor(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  sinceId: string | undefined,
): Promise<SessionCursor> {
  const session = await requireSession(deps, actor, sessionId)
  if (sinceId === undefined) return { sessionId: session.id, after: 0 }
  const after = deps.events.ids.decode(session.id, sinceId)
  // A genuine id of an event that is not there: the record was set back to an earlier state.
  if (after > session.lastSequence) throw invalid('since_id is ahead of the record; start without it')
  return { sessionId: session.id, after }
}

/** Events in batches that fit in memory, up to `limit`. Throws `not_found` when the session is deleted meanwhile. */
export const listSessionEvents = (
  deps: Deps,
  { sessionId, after }: SessionCursor,
  filter: EventFilter,
  limit: number | undefined,
): AsyncGenerator<EventLine[]> => listEvents(deps, sessionId, after, { filter, expand: expandGenerations, limit })

/** Events from the cursor on, then live: see `follow`. */
export const followSession = (
  deps: Deps,
  { sessionId, after }: SessionCursor,
  filter: EventFilter,
  signal: AbortSignal,
  onOverflow?: () => void,
): ReturnType<typeof follow> =>
  follow(deps, sessionId, after, { filter, expand: expandGenerations, onOverflow }, signal)
