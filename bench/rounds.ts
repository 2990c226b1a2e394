import { watchOthers } from './cpu.ts'
import type { Load, Measured, Subject } from './load.ts'
import { print } from './report.ts'
import { median } from './statistics.ts'

/** Five rounds unless BENCH_ROUNDS says otherwise. */
export const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
/** A process runs some hundred turns before its code is compiled. */
const WARM_UP: Load = { name: 'warm-up', count: ROUNDS > 1 ? 200 : 100, inFlight: 16, tokens: 20, pauseMs: 0 }

export const ALONE: Load = { name: '1', count: 40, inFlight: 1, tokens: 20, pauseMs: 0 }
export const SIXTEEN: Load = { name: '16', count: 160, inFlight: 16, tokens: 20, pauseMs: 0 }
export const SIXTY_FOUR: Load = { name: '64', count: 256, inFlight: 64, tokens: 20, pauseMs: 0 }
/** A storm of starts: all turns begin at the same moment, and stream as people read. */
export const STORM: Load = { name: 'storm', count: 200, inFlight: 200, tokens: 40, pauseMs: 50 }
export const BURST: Load = { name: 'burst', count: 50, inFlight: 50, tokens: 200, pauseMs: 5 }

/** Results of each round, in order. */
export type Results = { of(subject: string, load: Load): Measured[] }

/**
 * Measures each subject under its loads, in rounds. In a round each load is put on one subject after the other, in an
 * order that turns round with each round, so that all see the same machine.
 */
export async function runRounds(plan: { subject: Subject; loads: Load[] }[]): Promise<Results> {
  const results = new Map<string, Measured[]>()
  const keyOf = (subject: string, load: Load) => `${load.name} ${subject}`
  for (const { subject } of plan) await subject.measure(WARM_UP)
  const loads = new Set(plan.flatMap((one) => one.loads))
  const readOthers = watchOthers()
  for (let round = 0; round < ROUNDS; round++) {
    const order = round % 2 === 0 ? plan : plan.toReversed()
    for (const load of loads) {
      for (const { subject } of order.filter((one) => one.loads.includes(load))) {
        const key = keyOf(subject.name, load)
        results.set(key, [...(results.get(key) ?? []), await subject.measure(load)])
      }
    }
    print(`round ${round + 1} of ${ROUNDS}: programs beside the bench used ${readOthers().toFixed(2)} cores so far`)
  }
  return { of: (subject, load) => results.get(keyOf(subject, load)) ?? [] }
}

/** Returns the median of the rounds' ratios. The machine was in the same state for both values of a round. */
export const ratioOf = (
  results: Results,
  [subject, load, value]: [subject: string, load: Load, value: (measured: Measured) => number],
  [floor, floorLoad, floorValue]: [subject: string, load: Load, value: (measured: Measured) => number],
): number => {
  const floors = results.of(floor, floorLoad).map(floorValue)
  return median(results.of(subject, load).map((measured, round) => value(measured) / (floors[round] ?? Number.NaN)))
}
