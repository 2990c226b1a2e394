import { randomInt } from 'node:crypto'
import { isSoak } from './counts.ts'

/**
 * Seeds of the randomised tests in `npm test`. They are fixed so that an unlucky draw does not fail an unrelated
 * change. A seed that fails in a soak run is added to its list permanently.
 */
const SEEDS = {
  kills: [1],
  webhookKills: [1],
  doubledText: [1],
  storm: [1],
  scheduleStorm: [1],
  interleavings: [1],
  abandonedStreams: [1],
  sessionLists: [1],
  documents: [1, 494_151_735],
  conversations: [1],
  databaseScripts: [1],
  fuzz: [1],
} satisfies Record<string, [number, ...number[]]>

/** Returns the seeds of a test: those in SEED=1,2 if set, otherwise a new one in a soak run or the fixed ones. */
export function seedsOf(name: keyof typeof SEEDS): number[] {
  const given = process.env.SEED
  if (given) return given.split(',').map(Number)
  return isSoak ? [...SEEDS[name], randomInt(2 ** 31)] : SEEDS[name]
}
