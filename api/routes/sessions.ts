import { sessionEndpoints } from '../../contract/sessions.ts'
import { turnEndpoints } from '../../contract/turns.ts'
import type { Deps } from '../../domain/deps.ts'
import { createSession, getSession, listSessions } from '../../domain/sessions.ts'
import { cancelTurns } from '../../domain/turns/cancel.ts'
import { submitToolResults } from '../../domain/turns/client-calls.ts'
import { getTurn, listTurns } from '../../domain/turns/read.ts'
import { type Handle, reply } from '../handle.ts'

export function sessionRoutes(handle: Handle, deps: Deps): void {
  handle(sessionEndpoints.list, async ({ scope, query }) => reply(200, await listSessions(deps, scope, query)))
  handle(sessionEndpoints.create, async ({ scope, body }) => reply(201, await createSession(deps, scope, body)))
  handle(sessionEndpoints.get, async ({ scope, params }) =>
    reply(200, await getSession(deps, scope, params.session_id)),
  )
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
