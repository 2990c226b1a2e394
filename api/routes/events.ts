import { eventEndpoints } from '../../contract/events.ts'
import type { Deps } from '../../domain/deps.ts'
import type { EventLine } from '../../domain/events/read/read.ts'
import { followSession, listSessionEvents, openCursor } from '../../domain/sessions/events.ts'
import { filterTurn, followTurn, openTurnCursor } from '../../domain/turns/events.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'
import type { SseStreams } from '../http/sse.ts'

export function eventRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(eventEndpoints.list, async ({ actor, params, query, ctx }) => {
    const { turn_id } = query
    const cursor = await openCursor(deps, actor, params.session_id, query.since_id)
    const from = turn_id === undefined ? cursor : await openTurnCursor(deps, actor, cursor, turn_id, query)
    const filter = turn_id === undefined ? query : filterTurn(query, turn_id)
    return answerList(ctx, deps.log, linesOf(listSessionEvents(deps, from, filter, query.limit), lineOf))
  })
  handle(eventEndpoints.stream, async ({ actor, credential, params, query, ctx }) => {
    const sinceId = query.since_id ?? (ctx.get('Last-Event-ID') || undefined)
    const cursor = await openCursor(deps, actor, params.session_id, sinceId)
    const turn = query.turn_id && (await openTurnCursor(deps, actor, cursor, query.turn_id, query))
    if (turn?.isPast) return reply(204, undefined)
    await streams.serve(ctx, {
      organizationId: actor.organizationId,
      credential,
      kind: turn ? 'turn' : 'session',
      sessionId: cursor.sessionId,
      open: async (signal, onOverflow) =>
        turn
          ? followTurn(deps, turn, query, signal, onOverflow)
          : followSession(deps, cursor, query, signal, onOverflow),
    })
    return undefined
  })
}

/** Returns the event's line, which its reader has already serialized. */
const lineOf = ({ line }: EventLine): string => line
