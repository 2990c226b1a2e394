import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { FAULT_KINDS, type FaultKind, type PlannedFault } from './faults.ts'
import { type History, history, type Outcome, runHistory } from './history.ts'
import { type Place, SETTLE_MS } from './play.ts'
import { POINTS, type PointName } from './points.ts'
import type { Happened, World } from './world.ts'

/** A history, and the faults that are planned for it. */
export type Case = { acts: History; faults: PlannedFault[] }
export type Passed = Outcome & { happened: Happened[]; tookMs: number }
/** Failing case, made smaller if there was time. `seed` and `path` replay it. */
export type Failed = { seed: number; path: string; error: string; smallest: Case }
export type Proof = { passed: Passed[]; failed: Failed[] }

/** Frequencies: what costs seconds, or leaves little to find, comes seldom. */
const WEIGHTS: Partial<Record<FaultKind, number>> = { kill: 12, freeze: 4, 'temporal-restarted': 1 }
/** What begins, continues and ends a turn is what a fault can break most. */
const OFTEN = /^(start|step|reason|model|delta|append|group|act|tool|results|notice|turn)\./
const weightOf = (point: PointName) => (OFTEN.test(point) ? 3 : 1)
const MAX_LAST_MS = 1500
/** Longer than a process keeps its steps: others take them, and it goes on with them when it is back. */
const LONG_MS = { min: 3500, max: 6000 }
const MAY_BE_LONG = /^(freeze|cut|mute)/

const fault = (kinds: readonly FaultKind[]): fc.Arbitrary<PlannedFault> =>
  fc
    .record({
      kind: fc.oneof(...kinds.map((kind) => ({ weight: WEIGHTS[kind] ?? 2, arbitrary: fc.constant(kind) }))),
      point: fc.oneof(...POINTS.map((point) => ({ weight: weightOf(point), arbitrary: fc.constant(point) }))),
      // Most points are passed once or twice.
      nth: fc.constantFrom(1, 1, 1, 1, 2, 2, 3),
      lastsMs: fc.oneof(fc.nat({ max: MAX_LAST_MS }), fc.integer(LONG_MS)),
    })
    .map((one) => (MAY_BE_LONG.test(one.kind) ? one : { ...one, lastsMs: one.lastsMs % MAX_LAST_MS }))
const second = fc.oneof(
  fault(FAULT_KINDS).map((one) => ({ ...one, when: 'at once' as const })),
  fault(['kill']).map((one) => ({ ...one, when: 'in recovery' as const })),
)
const planned = fc.oneof(
  { weight: 3, arbitrary: fault(FAULT_KINDS) },
  { weight: 1, arbitrary: fc.tuple(fault(FAULT_KINDS), second).map(([one, then]) => ({ ...one, second: then })) },
)
const disturbed: fc.Arbitrary<Case> = fc.record({
  acts: history,
  faults: fc.array(planned, { minLength: 3, maxLength: 8, size: 'max' }),
})
const quiet: fc.Arbitrary<Case> = fc.record({ acts: history, faults: fc.constant<PlannedFault[]>([]) })

/** `stuckMs`: longest time without progress. */
export type Wanted = {
  seed: number
  count: number
  path?: string | undefined
  shrinkMs: number
  stopAt?: number
  stuckMs: number
}

/** Runs histories of a seed. Goes on after a failure with the next seed, until `stopAt` have failed. `note` is told of each. */
export async function prove(
  place: Place,
  world: World | undefined,
  { seed, count, path, shrinkMs, stopAt = Number.POSITIVE_INFINITY, stuckMs }: Wanted,
  note: (line: string) => void = () => {},
): Promise<Proof> {
  const passed: Passed[] = []
  const failed: Failed[] = []
  for (let now = seed; passed.length + failed.length < count && failed.length < stopAt; now++) {
    let failedAt: number | undefined
    let broken: Broken | undefined
    const property = fc.asyncProperty(world ? disturbed : quiet, async (one) => {
      // A path of a smaller case goes on to its siblings.
      if (path !== undefined && passed.length > 0) return
      if (failedAt !== undefined && Date.now() - failedAt > shrinkMs) return
      try {
        const proved = await runCase(place, world, one, stuckMs)
        if (failedAt !== undefined) return
        passed.push(proved)
        note(`${passed.length} ${JSON.stringify(proved)}`)
      } catch (error) {
        if (error instanceof Broken) broken ??= error
        failedAt ??= Date.now()
        note(
          `failed: ${String(error)}\n${inspect(one, { depth: 9, breakLength: 140 })}\n${JSON.stringify(world?.happened())}\n${world?.describe()}`,
        )
        throw error
      }
    })
    const result = await fc.check(property, {
      seed: now,
      numRuns: count - passed.length - failed.length,
      endOnFailure: shrinkMs === 0,
      ...(path !== undefined && { path }),
    })
    if (broken !== undefined) throw broken
    if (!result.failed) return { passed, failed }
    const [smallest] = result.counterexample ?? []
    failed.push({
      seed: now,
      path: result.counterexamplePath ?? '',
      error: String(result.errorInstance),
      smallest: smallest as Case,
    })
  }
  return { passed, failed }
}

/** Something else than the service has failed. */
class Broken extends Error {}

async function ofWorld(work: () => Promise<void> | undefined): Promise<void> {
  try {
    await work()
  } catch (error) {
    throw new Broken('the world of the history is broken', { cause: error })
  }
}

/** Runs a case, and ends its faults. Throws with the first difference from the model. */
async function runCase(
  place: Place,
  world: World | undefined,
  { acts, faults }: Case,
  stuckMs: number,
): Promise<Passed> {
  const at = Date.now()
  await ofWorld(() => world?.begin(faults))
  const settle = async () => {
    const comesBack = world?.isAnyAway()
    await ofWorld(() => world?.heal())
    if (comesBack) await sleep(SETTLE_MS)
  }
  try {
    const outcome = await runHistory(place, acts, { isDisturbed: world !== undefined, settle })
    if (outcome.slowestMs > stuckMs) throw new Error(`nothing happened for ${outcome.slowestMs} ms`)
    return { ...outcome, happened: [...(world?.happened() ?? [])], tookMs: Date.now() - at }
  } finally {
    await ofWorld(() => world?.heal())
  }
}
