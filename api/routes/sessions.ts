import { sessionEndpoints } from '../../contract/sessions.ts'
import type { Deps } from '../../domain/deps.ts'
import { createSession } from '../../domain/sessions/create.ts'
import { listSessions } from '../../domain/sessions/list.ts'
import { pinSession, unpinSession } from '../../domain/sessions/pins.ts'
import { getSession } from '../../domain/sessions/read.ts'
import { patchSession } from '../../domain/sessions/update.ts'
import { deleteSession } from '../../domain/upkeep/session-deletion/delete-session.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function sessionRoutes(handle: Handle, deps: Deps): void {
  handle(sessionEndpoints.list, async ({ actor, query, ctx }) => {
    const { pages, ...more } = await listSessions(deps, actor, query)
    return answerList(ctx, deps.log, linesOf(pages), { more })
  })
  handle(sessionEndpoints.create, async ({ actor, body, once }) =>
    reply(201, await once((attempt) => createSession(deps, actor, body, attempt))),
  )
  handle(sessionEndpoints.get, async ({ actor, params }) =>
    reply(200, await getSession(deps, actor, params.session_id)),
  )
  handle(sessionEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchSession(deps, actor, params.session_id, body)),
  )
  handle(sessionEndpoints.delete, async ({ actor, params }) => {
    await deleteSession(deps, actor, params.session_id)
    return reply(204, undefined)
  })
  handle(sessionEndpoints.pin, async ({ actor, params }) => {
    await pinSession(deps, actor, params.session_id)
    return reply(204, undefined)
  })
  handle(sessionEndpoints.unpin, async ({ actor, params }) => {
    await unpinSession(deps, actor, params.session_id)
    return reply(204, undefined)
  })
}
