import { runEndpoints } from '../../contract/runs.ts'
import type { Deps } from '../../domain/deps.ts'
import { cancelRuns } from '../../domain/turns/control/cancel-runs.ts'
import { countRuns } from '../../domain/turns/runs/count.ts'
import { listRuns } from '../../domain/turns/runs/list.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function runRoutes(handle: Handle, deps: Deps): void {
  handle(runEndpoints.list, async ({ actor, query, ctx }) => {
    const { pages, ...more } = await listRuns(deps, actor, query)
    return answerList(ctx, deps.log, linesOf(pages), { more })
  })
  handle(runEndpoints.count, async ({ actor, query }) => reply(200, await countRuns(deps, actor, query)))
  handle(runEndpoints.cancel, async ({ actor, body }) => reply(200, await cancelRuns(deps, actor, body)))
}
