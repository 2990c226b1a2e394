import { eventEndpoints } from '../../contract/events.ts'
import type { Deps } from '../../domain/deps.ts'
import { follow } from '../../domain/events/follow.ts'
import { listEvents, openCursor } from '../../domain/events/list.ts'
import type { EventLine } from '../../domain/events/read.ts'
import type { Handle } from '../http/handle.ts'
import { answerList } from '../http/json-list.ts'
import type { SseStreams } from '../http/sse.ts'

export function eventRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(eventEndpoints.list, async ({ actor, params, query, ctx }) => {
    const { sessionId, after } = await openCursor(deps, actor, params.session_id, query.since_id)
    const batches = listEvents(deps, sessionId, after, query, query.limit)
    return answerList(ctx, deps.log, linesOf(batches))
  })
  handle(eventEndpoints.stream, async ({ actor, credential, params, query, ctx }) => {
    const sinceId = query.since_id ?? (ctx.get('Last-Event-ID') || undefined)
    const { sessionId, after } = await openCursor(deps, actor, params.session_id, sinceId)
    await streams.serve(ctx, {
      organizationId: actor.organizationId,
      credential,
      sessionId,
      open: async (signal, onOverflow) => follow(deps, sessionId, after, query, signal, onOverflow),
    })
    return undefined
  })
}

async function* linesOf(pages: AsyncGenerator<EventLine[]>): AsyncGenerator<string> {
  for await (const page of pages) for (const { line } of page) yield line
}
