import { turnEndpoints } from '../../contract/turns.ts'
import type { Deps } from '../../domain/deps.ts'
import { cancelTurns } from '../../domain/turns/control/cancel.ts'
import { submitToolResults } from '../../domain/turns/control/client-calls.ts'
import { leaseToolCall, releaseToolCall } from '../../domain/turns/control/leases.ts'
import { getTurn, listTurns } from '../../domain/turns/read.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function turnRoutes(handle: Handle, deps: Deps): void {
  handle(turnEndpoints.list, async ({ actor, params, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listTurns(deps, actor, params.session_id, query))),
  )
  handle(turnEndpoints.get, async ({ actor, params }) =>
    reply(200, await getTurn(deps, actor, params.session_id, params.turn_id)),
  )
  handle(turnEndpoints.cancel, async ({ actor, params, body }) =>
    reply(200, await cancelTurns(deps, actor, params.session_id, body.turn_id ?? undefined)),
  )
  handle(turnEndpoints.submitToolResults, async ({ actor, params, body }) =>
    reply(200, await submitToolResults(deps, actor, params.session_id, body)),
  )
  handle(turnEndpoints.leaseToolCall, async ({ actor, params, body }) =>
    reply(200, await leaseToolCall(deps, actor, params, body.holder)),
  )
  handle(turnEndpoints.releaseToolCall, async ({ actor, params, query }) => {
    await releaseToolCall(deps, actor, params, query.holder)
    return reply(204, undefined)
  })
}
