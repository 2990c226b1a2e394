import { randomInt } from 'node:crypto'
import { isSoak } from './counts.ts'

/**
 * The seeds with which tests that draw at random run in each `npm test`, so that no change fails by a draw that others
 * were spared. A seed that failed in a soak run is added to its list, and stays.
 */
const SEEDS = {
  kills: [1],
  interleavings: [1],
  abandonedStreams: [1],
  sessionLists: [1],
  documents: [1],
  conversations: [1],
} satisfies Record<string, [number, ...number[]]>

/** The seeds of a test: those given as SEED=1,2, else a fresh one in a soak run, else the fixed ones. */
export function seedsOf(name: keyof typeof SEEDS): number[] {
  const given = process.env.SEED
  if (given) return given.split(',').map(Number)
  return isSoak ? [randomInt(2 ** 31)] : SEEDS[name]
}
