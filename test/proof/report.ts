import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { BUGS, type Bug } from './bugs.ts'
import { FAULT_KINDS } from './faults.ts'
import { POINTS } from './points.ts'
import type { Failed, Passed, Proof } from './prove.ts'

/** Number of the first history that found a planted bug, and how it replays. Undefined: none did. */
export type Found = { after: number; failed?: Failed | undefined }
/** Number of parts of the histories with faults. */
export const PARTS = 4
/** Results of the parts of a proof. `disturbed` is by the number of the part, `found` by the bug's. */
export type Results = { quiet: Proof; disturbed: Record<number, Proof>; found: Record<number, Found> }
/** `seeds`: one for each world. */
type Title = { seeds: number[]; release: string; date: string }

/** Adds results to the ones that a file keeps of earlier runs, and returns all of them. */
export async function keep(file: string, results: Partial<Results>): Promise<Partial<Results>> {
  const text = await readFile(file, 'utf8').catch(() => '{}')
  const kept: Partial<Results> = JSON.parse(text)
  const disturbed = { ...kept.disturbed, ...results.disturbed }
  const all = { ...kept, ...results, disturbed, found: { ...kept.found, ...results.found } }
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(file, JSON.stringify(all))
  return all
}

export const isComplete = (results: Partial<Results>): results is Results =>
  results.quiet !== undefined &&
  Object.keys(results.disturbed ?? {}).length === PARTS &&
  BUGS.every((_, index) => results.found?.[index + 1] !== undefined)

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0)

/** Joins proofs of parts. */
export const inOne = (proofs: Proof[]): Proof => ({
  passed: proofs.flatMap(({ passed }) => passed),
  failed: proofs.flatMap(({ failed }) => failed),
})

/** Writes the results of a proof as a page. */
export function formatReport(results: Results, { seeds, release, date }: Title): string {
  const { quiet, found } = results
  const disturbed = inOne(Object.values(results.disturbed))
  const bugs = BUGS.map((bug, index) => rowOfBug(bug, index + 1, found[index + 1]))
  return [
    '# Report of the proof',
    '',
    `Made by \`npm run proof\` on ${date}, of ${release}. [How it is tested](how-it-is-tested.md) says what this means.`,
    '',
    '| Histories | Run | Of them with a fault | Commands | Turns | Requests repeated | Faults | Different from the model | Stuck for over 5 s |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    row('undisturbed', quiet),
    row('with faults', disturbed),
    '',
    `Seed ${seeds[0]}; with faults, an equal part of each seed: ${seeds.join(', ')}. Longest time without progress while a process was there to serve: ${longest(disturbed.passed)}.`,
    '',
    '## Faults',
    '',
    '| Fault | Times |',
    '| --- | --- |',
    ...counted(FAULT_KINDS, disturbed.passed, 'kind'),
    '',
    '## Points',
    '',
    '| Point | Faults |',
    '| --- | --- |',
    ...counted(POINTS, disturbed.passed, 'point'),
    '',
    '## Planted bugs',
    '',
    `${Object.values(found).filter(({ failed }) => failed).length} of ${BUGS.length} were found. A bug is replayed by \`BUG=<number> SEED=<seed> HISTORY=<history> npm run proof\`.`,
    '',
    '| | Bug | Found by history | Seed and history | First difference |',
    '| --- | --- | --- | --- | --- |',
    ...bugs,
    ...failures([...quiet.failed, ...disturbed.failed]),
    '',
  ].join('\n')
}

function row(name: string, { passed, failed }: Proof): string {
  const disturbed = passed.filter(({ happened }) => happened.length > 0).length
  const faults = sum(passed.map(({ happened }) => happened.length))
  const stuck = passed.filter(({ slowestMs }) => slowestMs > 5000).length
  const total = (of: 'commands' | 'turns' | 'repeated') => sum(passed.map((one) => one[of]))
  const numbers = [
    passed.length + failed.length,
    disturbed,
    total('commands'),
    total('turns'),
    total('repeated'),
    faults,
    failed.length,
    stuck,
  ]
  return `| ${name} | ${numbers.join(' | ')} |`
}

function longest(passed: Passed[]): string {
  const times = passed.map(({ slowestMs }) => slowestMs).toSorted((a, b) => a - b)
  const at = (share: number) => `${((times[Math.floor(share * (times.length - 1))] ?? 0) / 1000).toFixed(1)} s`
  return `median ${at(0.5)}, 99 of 100 ${at(0.99)}, longest ${at(1)}`
}

function counted(names: readonly string[], passed: Passed[], of: 'kind' | 'point'): string[] {
  return names.map((name) => `| \`${name}\` | ${timesOf(name, passed, of)} |`)
}

const timesOf = (name: string, passed: Passed[], of: 'kind' | 'point'): number =>
  passed.flatMap(({ happened }) => happened).filter((fault) => fault[of] === name).length

/** Returns the kinds of faults and the points that no history had. */
export function neverHappened({ disturbed }: Results): string[] {
  const { passed } = inOne(Object.values(disturbed))
  return [
    ...FAULT_KINDS.filter((kind) => timesOf(kind, passed, 'kind') === 0),
    ...POINTS.filter((point) => timesOf(point, passed, 'point') === 0),
  ]
}

const MAX_DIFFERENCE = 100

function rowOfBug({ name }: Bug, number: number, { after, failed }: Found = { after: 0 }): string {
  const lines = failed?.error.split('\n') ?? []
  const first = lines.find((line) => /^[-+] (?! *(Expected|Received) )/.test(line)) ?? lines[0] ?? ''
  // A table is as wide as its widest cell.
  const difference = first.replaceAll(/ +/g, ' ').slice(0, MAX_DIFFERENCE)
  const replay = failed ? `${failed.seed}, \`${failed.path}\`` : ''
  const cells = [number, name, failed ? after : 'not found', replay, `\`${difference.replaceAll(/[|`]/g, '')}\``]
  return `| ${cells.join(' | ')} |`
}

const failures = (failed: Failed[]): string[] =>
  failed.flatMap(({ seed, path, error, smallest }) => [
    '',
    `## Failure of seed ${seed}, history ${path}`,
    '',
    '```',
    error.slice(0, 4000),
    JSON.stringify(smallest, null, 1),
    '```',
  ])
