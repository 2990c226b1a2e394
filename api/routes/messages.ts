import type { Context } from 'koa'
import { conversationEndpoints } from '../../contract/conversation.ts'
import type { Deps } from '../../domain/deps.ts'
import { createMessage, listMessages } from '../../domain/messages.ts'
import { followTurn, waitForTurn } from '../../domain/turns/wait.ts'
import { type Handle, reply } from '../handle.ts'
import type { SseStreams } from '../sse.ts'

/** The answer needs no more than this after the waiting is over. */
export function messageRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(conversationEndpoints.listMessages, async ({ scope, params, query }) =>
    reply(200, { data: await listMessages(deps, scope, params.session_id, query) }),
  )
  handle(conversationEndpoints.createMessage, async ({ scope, params, query, body, ctx }) => {
    const accepted = await createMessage(deps, scope, params.session_id, body)
    if (wantsStream(ctx)) {
      await streams.serve(ctx, {
        organizationId: scope.organizationId,
        sessionId: accepted.sessionUuid,
        open: (signal, onOverflow) => followTurn(deps, accepted, signal, onOverflow),
      })
      return undefined
    }
    if (query.wait === undefined) return reply(201, accepted.message)
    const { hasEnded, ...waited } = await waitForTurn(deps, scope, accepted, untilGone(ctx, query.wait * 1000))
    return hasEnded ? reply(200, waited) : reply(202, { message: waited.message, turn: waited.turn })
  })
}

const wantsStream = (ctx: Context): boolean => ctx.accepts('json', 'text/event-stream') === 'text/event-stream'

/** Aborts after `ms`, or when the client has gone. */
function untilGone(ctx: Context, ms: number): AbortSignal {
  const gone = new AbortController()
  ctx.res.once('close', () => gone.abort())
  return AbortSignal.any([gone.signal, AbortSignal.timeout(ms)])
}
