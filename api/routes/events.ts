import { conversationEndpoints } from '../../contract/conversation.ts'
import type { Deps } from '../../domain/deps.ts'
import { follow } from '../../domain/events/follow.ts'
import { listEvents, openCursor } from '../../domain/events/list.ts'
import type { EventLine } from '../../domain/events/read.ts'
import type { Handle } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'
import type { SseStreams } from '../http/sse.ts'

export function eventRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(conversationEndpoints.listEvents, async ({ actor, params, query, ctx }) => {
    const { sessionUuid, after } = await openCursor(deps, actor, params.session_id, query.since_id)
    const pages = listEvents(deps, sessionUuid, after, query, query.limit)
    return answerList(ctx, deps.log, linesOf(pages, lineOf))
  })
  handle(conversationEndpoints.streamEvents, async ({ actor, credential, params, query, ctx }) => {
    const sinceId = query.since_id ?? (ctx.get('Last-Event-ID') || undefined)
    const { sessionUuid, after } = await openCursor(deps, actor, params.session_id, sinceId)
    await streams.serve(ctx, {
      organizationId: actor.organizationId,
      credential,
      sessionId: sessionUuid,
      open: async (signal, onOverflow) => follow(deps, sessionUuid, after, query, signal, onOverflow),
    })
    return undefined
  })
}

/** An event is written out by its reader already. */
const lineOf = ({ line }: EventLine): string => line
