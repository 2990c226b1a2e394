import type { Context } from 'koa'
import { conversationEndpoints } from '../../contract/conversation.ts'
import { findEnded } from '../../domain/auth/caller.ts'
import type { Deps } from '../../domain/deps.ts'
import { toUuid } from '../../domain/ids.ts'
import { createMessage, listMessages } from '../../domain/messages.ts'
import { followTurn, waitForTurn } from '../../domain/turns/wait.ts'
import { authenticationRequired } from '../authenticate.ts'
import { type Handle, reply } from '../handle.ts'
import { answerList, linesOf } from '../json-list.ts'
import type { SseStreams } from '../sse.ts'

export function messageRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(conversationEndpoints.listMessages, async ({ scope, params, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listMessages(deps, scope, params.session_id, query))),
  )
  handle(conversationEndpoints.createMessage, async ({ scope, credential, params, query, body, ctx, once }) => {
    const accept = () => once((run) => createMessage(deps, scope, params.session_id, body, run))
    if (wantsStream(ctx)) {
      await streams.serve(ctx, {
        organizationId: scope.organizationId,
        credential,
        sessionId: toUuid(params.session_id),
        // With no room for a stream the message is not accepted either, or the client would send it twice.
        open: async (signal, onOverflow) => followTurn(deps, await accept(), signal, onOverflow),
      })
      return undefined
    }
    const accepted = await accept()
    if (query.wait === undefined) return reply(201, accepted.message)
    const signal = AbortSignal.any([untilGone(ctx, query.wait * 1000), streams.closing])
    const { hasEnded, ...waited } = await waitForTurn(deps, scope, accepted, signal)
    if (credential !== undefined && (await findEnded(deps, [credential])).size > 0) throw authenticationRequired()
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
