import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'

export type Coverage = {
  /** Whether blocks have run that had not run before the last call. */
  hasGrown(): Promise<boolean>
  stop(): Promise<void>
}

const NEVER: Coverage = { hasGrown: async () => false, stop: async () => {} }

/**
 * Counts the blocks that this thread runs by V8's own coverage, in the service and the packages that it parses with.
 * `isOn` false: counts nothing, and so costs nothing.
 */
export async function watchCoverage(isOn: boolean): Promise<Coverage> {
  if (!isOn) return NEVER
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: false, detailed: true })
  const seen = new Set<string>()
  return {
    hasGrown: async () => {
      const { result } = await session.post('Profiler.takePreciseCoverage')
      const blocks = result.filter(({ url }) => url.startsWith('file:') && !url.includes('/test/')).flatMap(blocksOf)
      const added = blocks.filter((block) => !seen.has(block))
      for (const block of added) seen.add(block)
      return added.length > 0
    },
    stop: async () => session.disconnect(),
  }
}

/** Names each block of a script with whether it has run. */
const blocksOf = ({ url, functions }: Profiler.ScriptCoverage): string[] =>
  functions.flatMap(({ ranges }) =>
    ranges.map(({ startOffset, endOffset, count }) => `${url}:${startOffset}:${endOffset}:${count}`),
  )
