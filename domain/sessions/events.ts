import type { SessionId } from '../../contract/kit/ids.ts'
import type { Deps } from '../conversation/deps.ts'
import { expandGenerations } from '../conversation/expand-generations.ts'
import type { EventFilter } from '../events/read/filter.ts'
import { follow } from '../events/read/follow.ts'
import { listEvents } from '../events/read/list.ts'
import type { EventLine } from '../events/read/read.ts'
import type { Actor } from '../kit/actor.ts'
import { invalid } from '../kit/errors.ts'
import { requireSession } from '../kit/session-scope.ts'

/** Session, and the sequence after which a client continues to read its events. */
export type SessionCursor = { sessionId: string; after: number }

/**
 * Returns the cursor from which a client continues: sequence 0 without `sinceId`. Throws `not_found`, and `invalid` for
 * an id of another session.
 */
export async function openCursor(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  sinceId: string | undefined,
): Promise<SessionCursor> {
  const session = await requireSession(deps, actor, sessionId)
  if (sinceId === undefined) return { sessionId: session.id, after: 0 }
  const after = deps.events.ids.decode(session.id, sinceId)
  // The id is genuine but its event does not exist: the record was reset to an earlier state.
  if (after > session.lastSequence) throw invalid('since_id: is ahead of the record; start without it')
  return { sessionId: session.id, after }
}

/**
 * Lists events in batches that fit in memory, up to `limit`. Throws `not_found` when the session is deleted meanwhile.
 */
export const listSessionEvents = (
  deps: Deps,
  { sessionId, after }: SessionCursor,
  filter: EventFilter,
  limit: number | undefined,
): AsyncGenerator<EventLine[]> => listEvents(deps, sessionId, after, { filter, expand: expandGenerations, limit })

/** Yields events from the cursor on, then live; see `follow`. */
export const followSession = (
  deps: Deps,
  { sessionId, after }: SessionCursor,
  filter: EventFilter,
  signal: AbortSignal,
  onOverflow?: () => void,
): ReturnType<typeof follow> =>
  follow(deps, sessionId, after, { filter, expand: expandGenerations, onOverflow }, signal)
