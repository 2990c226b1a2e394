import type { AgentCapabilityConfig } from '../../../contract/tools.ts'
import type { Capability } from './capability.ts'

export type ResolvedCapability = { capability: Capability; config: unknown }

/**
 * Resolves the capabilities of agent and session, in their order, dependencies before dependents, each once. The last
 * configuration of a capability wins. Skips unknown and unavailable ones, because an agent may outlive a capability.
 */
export function resolveCapabilities(refs: AgentCapabilityConfig[], registry: Capability[]): ResolvedCapability[] {
  const available = new Map(
    registry.filter(({ status }) => status === 'available').map((capability) => [capability.id, capability]),
  )
  const configs = new Map(refs.filter(({ config }) => config !== undefined).map(({ ref, config }) => [ref, config]))
  const seen = new Set<string>()
  const resolved: ResolvedCapability[] = []
  const add = (id: string): void => {
    const capability = available.get(id)
    if (capability === undefined || seen.has(id)) return
    seen.add(id)
    for (const dependency of capability.dependencies) add(dependency)
    resolved.push({ capability, config: configs.get(id) })
  }
  for (const { ref } of refs) add(ref)
  return resolved
}
