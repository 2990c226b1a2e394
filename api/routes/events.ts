import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { conversationEndpoints } from '../../contract/conversation.ts'
import type { WireEvent } from '../../contract/events.ts'
import type { Deps } from '../../domain/deps.ts'
import { follow } from '../../domain/events/follow.ts'
import { listEvents, openCursor } from '../../domain/events/list.ts'
import type { Handle } from '../handle.ts'
import type { SseStreams } from '../sse.ts'

export function eventRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(conversationEndpoints.listEvents, async ({ scope, params, query, ctx }) => {
    const { sessionUuid, after } = await openCursor(deps, scope, params.session_id, query.since_id)
    const batches = listEvents(deps, sessionUuid, after, query, query.limit)
    // The first batch is read before the answer begins, so that a failure can still be told.
    const first = await batches.next()
    const body = new PassThrough()
    ctx.type = 'application/json'
    ctx.body = body
    pipeline(Readable.from(jsonList(first, batches)), body).catch((error: Error) => {
      if (!ctx.res.destroyed) deps.log.warn({ err: error.message }, 'event list broken off')
    })
    return undefined
  })
  handle(conversationEndpoints.streamEvents, async ({ scope, params, query, ctx }) => {
    const sinceId = query.since_id ?? (ctx.get('Last-Event-ID') || undefined)
    const { sessionUuid, after } = await openCursor(deps, scope, params.session_id, sinceId)
    await streams.serve(ctx, {
      organizationId: scope.organizationId,
      sessionId: sessionUuid,
      open: (signal, onOverflow) => follow(deps, sessionUuid, after, query, signal, onOverflow),
    })
    return undefined
  })
}

/** `{"data":[…]}` piece by piece: the whole list is never in memory. */
async function* jsonList(
  first: IteratorResult<WireEvent[]>,
  rest: AsyncGenerator<WireEvent[]>,
): AsyncGenerator<string> {
  let separator = '{"data":['
  for (let next = first; !next.done; next = await rest.next()) {
    yield separator + next.value.map((event) => JSON.stringify(event)).join(',')
    separator = ','
  }
  yield separator === ',' ? ']}' : '{"data":[]}'
}
