import type { Context } from 'koa'
import { messageEndpoints } from '../../contract/messages.ts'
import type { Deps } from '../../domain/deps.ts'
import { requireSession } from '../../domain/kit/session-scope.ts'
import { createMessage } from '../../domain/messages/create.ts'
import { listMessages } from '../../domain/messages/list.ts'
import { cursorOf, waitForTurn } from '../../domain/messages/wait.ts'
import { followTurn } from '../../domain/turns/events.ts'
import { requireLiving } from '../auth/authenticate.ts'
import { type Handle, reply } from '../http/handle.ts'
import { whileHeld } from '../http/held-wait.ts'
import { answerList, linesOf } from '../http/json-list.ts'
import type { SseStreams } from '../http/sse.ts'

export function messageRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  handle(messageEndpoints.list, async ({ actor, params, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listMessages(deps, actor, params.session_id, query))),
  )
  handle(messageEndpoints.create, async ({ actor, credential, params, query, body, ctx, once }) => {
    const accept = () => once((attempt) => createMessage(deps, actor, params.session_id, body, attempt))
    if (wantsStream(ctx)) {
      const { id } = await requireSession(deps, actor, params.session_id)
      await streams.serve(ctx, {
        organizationId: actor.organizationId,
        credential,
        kind: 'turn',
        sessionId: id,
        // Without room for a stream the message is not accepted either; otherwise the client would send it twice.
        open: async (signal, onOverflow) => followTurn(deps, cursorOf(await accept()), {}, signal, onOverflow),
      })
      return undefined
    }
    const { wait } = query
    if (wait === undefined) return reply(201, (await accept()).message)
    const held = { organizationId: actor.organizationId, ms: wait * 1000 }
    // Without room the message is not accepted either; otherwise the client would send it twice.
    const { hasEnded, ...waited } = await whileHeld(ctx, streams, held, async (signal) =>
      waitForTurn(deps, actor, await accept(), signal),
    )
    await requireLiving(deps, credential)
    return hasEnded ? reply(200, waited) : reply(202, { message: waited.message, turn: waited.turn })
  })
}

const wantsStream = (ctx: Context): boolean => ctx.accepts('json', 'text/event-stream') === 'text/event-stream'
