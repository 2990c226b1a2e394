import { sumOf } from './cpu.ts'
import type { Load, Measured } from './load.ts'
import { goal, print } from './report.ts'
import { ALONE, BURST, type Results, ratioOf, SIXTEEN, SIXTY_FOUR, STORM } from './rounds.ts'
import { median } from './statistics.ts'

export const SERVICE = 'service'
export const BEFORE = 'service before'
export const FLOOR_BEFORE = 'one activity, server before'
export const FLOOR = 'one activity'
export const LOCAL_FLOOR = 'one local activity'

const number = (value: number, digits: number, width: number) => value.toFixed(digits).padStart(width)

/** Prints a table of the subjects under the loads: medians of the rounds. */
export function printTable(results: Results, subjects: string[], loads: Load[]): void {
  print('')
  print(`${'in flight'.padEnd(36)}first p50     p95 whole p50     p95  turns/s   CPU a turn (all in ms)`)
  for (const load of loads) {
    for (const subject of subjects) {
      const rounds = results.of(subject, load)
      if (rounds.length > 0) print(`${`${load.name} ${subject}`.padEnd(36)}${row(rounds)}`)
    }
  }
  print('')
}

function row(rounds: Measured[]): string {
  const of = (value: (measured: Measured) => number) => median(rounds.map(value))
  const roles = Object.keys(rounds[0]?.cpu ?? {})
  const byRole = roles.map((role) => `${role} ${of(({ cpu }) => cpu[role] ?? Number.NaN).toFixed(1)}`)
  return [
    number(
      of((one) => one.firstP50),
      1,
      9,
    ),
    number(
      of((one) => one.firstP95),
      1,
      8,
    ),
    number(
      of((one) => one.wholeP50),
      1,
      10,
    ),
    number(
      of((one) => one.wholeP95),
      1,
      8,
    ),
    number(
      of((one) => one.perSecond),
      1,
      9,
    ),
    number(
      of(({ cpu }) => sumOf(cpu)),
      1,
      8,
    ),
    `: ${byRole.join(', ')}`,
  ].join('')
}

const first = (measured: Measured) => measured.firstP50
const whole = (measured: Measured) => measured.wholeP50
const rate = (measured: Measured) => measured.perSecond

/** Prints the goals that need no version before; returns true when all are met. */
export function reportGoals(results: Results): boolean {
  const busy = [SIXTEEN, SIXTY_FOUR]
  return [
    atMost(0.7, 'first token alone, of the whole workflow with one activity', [
      ratioOf(results, [SERVICE, ALONE, first], [FLOOR, ALONE, whole]),
    ]),
    atMost(0.9, 'whole turn alone, of the same', [ratioOf(results, [SERVICE, ALONE, whole], [FLOOR, ALONE, whole])]),
    atLeast(
      1.6,
      'turns/s at 16 and 64, of workflows with one activity on the server before',
      busy.map((load) => ratioOf(results, [SERVICE, load, rate], [FLOOR_BEFORE, load, rate])),
    ),
    atLeast(
      0.7,
      'turns/s at 16 and 64, of workflows with one local activity',
      busy.map((load) => ratioOf(results, [SERVICE, load, rate], [LOCAL_FLOOR, load, rate])),
    ),
    atMost(
      0.7,
      'first token at 16 and 64, of the whole turn',
      busy.map((load) => ratioOf(results, [SERVICE, load, first], [SERVICE, load, whole])),
    ),
    reportLosses(results, SERVICE),
  ].every(Boolean)
}

/** Prints the goals beside the version before; returns true when all are met. */
export function reportGoalsBefore(results: Results): boolean {
  const beside = (load: Load, value: (measured: Measured) => number) =>
    ratioOf(results, [SERVICE, load, value], [BEFORE, load, value])
  return [
    atMost(0.5, 'CPU of a turn at 16, of the version before', [beside(SIXTEEN, ({ cpu }) => sumOf(cpu))]),
    atMost(0.15, 'p95 of the first token in the burst, of the version before', [beside(BURST, (one) => one.firstP95)]),
    atMost(0.3, 'p95 of the turn in the burst, of the version before', [beside(BURST, (one) => one.wholeP95)]),
  ].every(Boolean)
}

/** Prints the goals of a shape beside one process; returns true when all are met. */
export function reportShapes(results: Results, shape: string): boolean {
  const loads = [ALONE, SIXTY_FOUR, STORM]
  const beside = (value: (measured: Measured) => number) =>
    loads.map((load) => ratioOf(results, [shape, load, value], [SERVICE, load, value]))
  const where = `of ${shape}, alone, at 64 and in the storm, of one process`
  return [
    atMost(1.3, `p50 of the first token ${where}`, beside(first)),
    atMost(
      1.3,
      `p95 of the first token ${where}`,
      beside((measured) => measured.firstP95),
    ),
    reportLosses(results, shape),
  ].every(Boolean)
}

/** Prints whether text was lost or repeated, or the provider asked other than once for a turn. */
export function reportLosses(results: Results, subject: string): boolean {
  const rounds = [ALONE, SIXTEEN, SIXTY_FOUR, BURST].flatMap((load) => results.of(subject, load))
  const lost = rounds.flatMap((measured) => measured.lost)
  const isAskedOnce = rounds.every(({ calls }) => calls === 1)
  for (const sentence of lost.slice(0, 5)) print(sentence.slice(0, 500))
  const calls = rounds.map((measured) => measured.calls)
  const spread = `${Math.min(...calls).toFixed(2)} to ${Math.max(...calls).toFixed(2)}`
  return goal(
    lost.length === 0 && isAskedOnce,
    `${subject}: all text once and in order, in streams and record (${lost.length} differ); the model asked once a turn: ${spread}`,
  )
}

const shown = (ratios: number[]): string => ratios.map((ratio) => ratio.toFixed(2)).join(' and ')
/** Prints a goal of ratios, and whether all are low enough. */
export const atMost = (most: number, what: string, ratios: number[]): boolean =>
  goal(
    ratios.every((ratio) => ratio <= most),
    `${what}: at most ${most}: ${shown(ratios)}`,
  )
/** Prints a goal of ratios, and whether all are high enough. */
export const atLeast = (least: number, what: string, ratios: number[]): boolean =>
  goal(
    ratios.every((ratio) => ratio >= least),
    `${what}: at least ${least}: ${shown(ratios)}`,
  )
