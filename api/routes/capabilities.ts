import { capabilityEndpoints } from '../../contract/capabilities.ts'
import { getCapability, listCapabilities } from '../../domain/capabilities/list.ts'
import type { Deps } from '../../domain/deps.ts'
import { type Handle, reply } from '../http/handle.ts'

export function capabilityRoutes(handle: Handle, deps: Deps): void {
  handle(capabilityEndpoints.list, async () => reply(200, { data: listCapabilities(deps) }))
  handle(capabilityEndpoints.get, async ({ params }) => reply(200, getCapability(deps, params.capability_id)))
}
