import { sessionEndpoints } from '../../contract/sessions.ts'
import { turnEndpoints } from '../../contract/turns.ts'
import type { Deps } from '../../domain/deps.ts'
import { deleteSession } from '../../domain/sessions/delete.ts'
import { listSessions } from '../../domain/sessions/list.ts'
import { pinSession, unpinSession } from '../../domain/sessions/pins.ts'
import { getSession } from '../../domain/sessions/read.ts'
import { createSession, patchSession } from '../../domain/sessions/write.ts'
import { cancelTurns } from '../../domain/turns/cancel.ts'
import { submitToolResults } from '../../domain/turns/client-calls.ts'
import { getTurn, listTurns } from '../../domain/turns/read.ts'
import { type Handle, reply } from '../handle.ts'
import { answerList, linesOf } from '../json-list.ts'

export function sessionRoutes(handle: Handle, deps: Deps): void {
  handle(sessionEndpoints.list, async ({ scope, query, ctx }) => {
    const { pages, ...more } = await listSessions(deps, scope, query)
    return answerList(ctx, deps.log, linesOf(pages), { more })
  })
  handle(sessionEndpoints.create, async ({ scope, body, once }) =>
    reply(201, await once((run) => createSession(deps, scope, body, run))),
  )
  handle(sessionEndpoints.get, async ({ scope, params }) =>
    reply(200, await getSession(deps, scope, params.session_id)),
  )
  handle(sessionEndpoints.patch, async ({ scope, params, body }) =>
    reply(200, await patchSession(deps, scope, params.session_id, body)),
  )
  handle(sessionEndpoints.delete, async ({ scope, params }) => {
    await deleteSession(deps, scope, params.session_id)
    return reply(204, undefined)
  })
  handle(sessionEndpoints.pin, async ({ scope, params }) => {
    await pinSession(deps, scope, params.session_id)
    return reply(204, undefined)
  })
  handle(sessionEndpoints.unpin, async ({ scope, params }) => {
    await unpinSession(deps, scope, params.session_id)
    return reply(204, undefined)
  })
  handle(turnEndpoints.list, async ({ scope, params, query }) =>
    reply(200, { data: await listTurns(deps, scope, params.session_id, query) }),
  )
  handle(turnEndpoints.get, async ({ scope, params }) =>
    reply(200, await getTurn(deps, scope, params.session_id, params.turn_id)),
  )
  handle(turnEndpoints.cancel, async ({ scope, params, body }) =>
    reply(200, await cancelTurns(deps, scope, params.session_id, body.turn_id ?? undefined)),
  )
  handle(turnEndpoints.submitToolResults, async ({ scope, params, body }) =>
    reply(200, await submitToolResults(deps, scope, params.session_id, body)),
  )
}
