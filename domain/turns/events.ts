import { type EventType, isTurnEnd, turnEndTypes } from '../../contract/events.ts'
import type { TurnId } from '../../contract/kit/ids.ts'
import { createEventMatcher, type EventFilter, wantedTypes } from '../events/read/filter.ts'
import type { EventLine } from '../events/read/read.ts'
import type { Actor } from '../kit/actor.ts'
import { notFound } from '../kit/errors.ts'
import { followSession, type SessionCursor } from '../sessions/events.ts'
import type { Deps } from './deps.ts'

/**
 * Turn, and the sequence after which a client continues to read its events. `isPast`: the turn has ended, and no event that
 * the client wants comes after that.
 */
export type TurnCursor = SessionCursor & { turnId: string; isPast?: boolean }

type TurnEvents = Pick<EventFilter, 'types' | 'exclude'>

/** Narrows a session's cursor to the wanted events of one of its turns. Throws `not_found` for a turn of another session. */
export async function openTurnCursor(
  deps: Deps,
  { organizationId }: Actor,
  { sessionId, after }: SessionCursor,
  turnId: TurnId,
  wanted: TurnEvents,
): Promise<TurnCursor> {
  const types = wantedTypes(filterTurn(wanted, turnId))
  const [turn] = await deps.db.$queryRaw<{ input: number; hasEnded: boolean; last: number | null }[]>`
    SELECT input_sequence AS input, finished_at IS NOT NULL AS "hasEnded",
      (SELECT max(sequence) FROM events WHERE turn_id = turns.id AND type = ANY (${types}::text[])) AS last
    FROM turns
    WHERE id = ${turnId}::uuid AND session_id = ${sessionId}::uuid AND organization_id = ${organizationId}::uuid`
  if (turn === undefined) throw notFound('Turn')
  const isPast = turn.hasEnded && (turn.last ?? 0) <= after
  return { sessionId, turnId, after: Math.max(after, turn.input - 1), isPast }
}

/** Returns the filter for the events of a turn up to its end, which session.idled follows. */
export const filterTurn = ({ types, exclude = [] }: TurnEvents, turnId: string): EventFilter => ({
  types,
  exclude: [...exclude, 'session.idled'],
  turnId,
})

/**
 * Yields the wanted events of one turn after the cursor, then returns 'end'. The turn's end also ends a reader who does
 * not want its event.
 */
export async function* followTurn(
  deps: Deps,
  { turnId, ...cursor }: TurnCursor,
  wanted: TurnEvents,
  signal: AbortSignal,
  onOverflow?: () => void,
): AsyncGenerator<EventLine[], string> {
  const matches = createEventMatcher(wanted)
  const events = followSession(deps, cursor, { types: withTurnEnds(wanted), turnId }, signal, onOverflow)
  try {
    for (;;) {
      const next = await events.next()
      if (next.done) return next.value
      const end = next.value.findIndex((event) => isTurnEnd(event.type))
      const found = (end < 0 ? next.value : next.value.slice(0, end + 1)).filter(matches)
      if (found.length > 0) yield found
      if (end >= 0) return 'end'
    }
  } finally {
    await events.return('aborted')
  }
}

/** Returns the wanted types and the types that end a turn; undefined for all. */
const withTurnEnds = (wanted: TurnEvents): EventType[] | undefined =>
  wanted.types || wanted.exclude ? [...wantedTypes(wanted), ...turnEndTypes] : undefined
