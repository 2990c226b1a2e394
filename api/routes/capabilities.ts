import { capabilityEndpoints } from '../../contract/capabilities.ts'
import type { Deps } from '../../domain/deps.ts'
import { getCapability, listCapabilities } from '../../domain/tools/registry/list.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function capabilityRoutes(handle: Handle, deps: Deps): void {
  handle(capabilityEndpoints.list, async ({ actor, ctx }) =>
    answerList(ctx, deps.log, linesOf(listCapabilities(deps, actor))),
  )
  handle(capabilityEndpoints.get, async ({ actor, params }) =>
    reply(200, await getCapability(deps, actor, params.capability_id)),
  )
}
