import type { ResolvedCapability } from './resolve.ts'

export const isAnyStale = (capabilities: ResolvedCapability[]): boolean =>
  capabilities.some(({ capability }) => capability.freshen !== undefined)

/**
 * Brings capabilities that may be out of date up to date, all at once. Resolves with true when the record of any has
 * changed. Rejects only with the signal's reason.
 */
export async function freshen(capabilities: ResolvedCapability[], signal: AbortSignal): Promise<boolean> {
  const changes = await Promise.all(capabilities.map(({ capability }) => capability.freshen?.(signal)))
  return changes.includes(true)
}
