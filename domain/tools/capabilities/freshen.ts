import type { ResolvedCapability } from './resolve.ts'

export const isAnyStale = (capabilities: ResolvedCapability[]): boolean =>
  capabilities.some(({ capability }) => capability.freshen !== undefined)

/**
 * Updates capabilities that may be out of date, all at once. Resolves with true if any record has changed. Rejects only
 * with the signal's reason.
 */
export async function freshen(capabilities: ResolvedCapability[], signal: AbortSignal): Promise<boolean> {
  const changes = await Promise.all(capabilities.map(({ capability }) => capability.freshen?.(signal)))
  return changes.includes(true)
}
