import { eventEndpoints } from '../../contract/events.ts'
import type { Deps } from '../../domain/deps.ts'
import type { EventLine } from '../../domain/events/read.ts'
import { followSession, listSessionEvents, openCursor } from '../../domain/sessions/events.ts'
import type { Handle } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'
import type { SseStreams } from '../http/sse.ts'

export function eventRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(eventEndpoints.list, async ({ actor, params, query, ctx }) => {
    const cursor = await openCursor(deps, actor, params.session_id, query.since_id)
    const pages = listSessionEvents(deps, cursor, query, query.limit)
    return answerList(ctx, deps.log, linesOf(pages, lineOf))
  })
  handle(eventEndpoints.stream, async ({ actor, credential, params, query, ctx }) => {
    const sinceId = query.since_id ?? (ctx.get('Last-Event-ID') || undefined)
    const cursor = await openCursor(deps, actor, params.session_id, sinceId)
    await streams.serve(ctx, {
      organizationId: actor.organizationId,
      credential,
      kind: 'session',
      sessionId: cursor.sessionId,
      open: async (signal, onOverflow) => followSession(deps, cursor, query, signal, onOverflow),
    })
    return undefined
  })
}

/** Returns the event's line, which its reader has already serialized. */
const lineOf = ({ line }: EventLine): string => line
