import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { sample } from 'fast-check'
import { createRandom } from '../../support/random.ts'
import { watchCoverage } from './coverage.ts'
import { MAX_INPUT_BYTES, type Material, mutate } from './mutate.ts'
import type { Parser } from './parser.ts'

export const CORPUS = path.join(import.meta.dirname, 'corpus')

/** `seconds` limits the mutations by time instead of by their number, and lets new coverage lead them. */
export type Effort = { seed: number; inputs: number; seconds?: number | undefined }
export type Tally = { accepted: number; refused: number; pool: number }
/** `input` is base64, as small as the failure could be kept. */
export type Failure = { problem: string; input: string }

/** Number of inputs after which coverage is read, which costs as much as some of them. All are kept if it has grown. */
const BATCH = 16
/** Share of inputs that are drawn from the grammar. */
const DRAWN = 1 / 8
const MAX_SHRINKS = 400

class Failed extends Error {
  readonly input: Buffer
  constructor(input: Buffer, cause: unknown) {
    super('the parser failed', { cause })
    this.input = input
  }
}

/** Returns the inputs of a parser's folder in the corpus: earlier failures, and what is hard to draw. */
export function readCorpus(name: string): Buffer[] {
  const folder = path.join(CORPUS, name)
  return existsSync(folder) ? readdirSync(folder).map((file) => readFileSync(path.join(folder, file))) : []
}

/** Checks the corpus, then mutations of it. `begin` is told each input before it is parsed. */
export async function run(
  parser: Parser,
  effort: Effort,
  begin: (input: Buffer) => void,
): Promise<Tally | { failure: Failure }> {
  const check = async (input: Buffer) => {
    begin(input)
    return parser.check(input)
  }
  try {
    return await explore(parser, effort, async (input) => {
      try {
        return await check(input)
      } catch (error) {
        throw new Failed(input, error)
      }
    })
  } catch (error) {
    if (!(error instanceof Failed)) throw error
    const input = await shrink(error.input, nameOf(error.cause), check)
    return { failure: { problem: describe(error.cause), input: input.toString('base64') } }
  }
}

async function explore(parser: Parser, effort: Effort, check: Parser['check']): Promise<Tally> {
  const number = createHash('sha256').update(`${effort.seed} ${parser.name}`).digest().readUInt32BE()
  const random = createRandom(number)
  const pool = [...readCorpus(parser.name), ...(await parser.seeds())]
  const drawn = (parser.drawn === undefined ? [] : sample(parser.drawn, { seed: number, numRuns: 1000 })).map((input) =>
    Buffer.from(input),
  )
  const tally: Tally = { accepted: 0, refused: 0, pool: 0 }
  for (const input of pool) tally[await check(input)]++
  const material: Material = { random, pool, words: (parser.words ?? []).map((word) => Buffer.from(word, 'latin1')) }
  const pick = (list: Buffer[]) => list[Math.floor(random() * list.length)] ?? Buffer.of()
  const next = (): Buffer => {
    const isDrawn = drawn.length > 0 && random() < DRAWN
    if (isDrawn && random() < 0.5) return pick(drawn)
    const mutated = mutate(pick(isDrawn ? drawn : pool), material)
    return (random() < 0.7 && parser.repair?.(mutated)) || mutated
  }
  const coverage = await watchCoverage(effort.seconds !== undefined)
  const endsAt = effort.seconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + effort.seconds * 1000
  for (let left = effort.inputs / (parser.cost ?? 1); left > 0 && performance.now() < endsAt; left -= BATCH) {
    const batch = Array.from({ length: Math.ceil(Math.min(BATCH, left)) }, next)
    for (const input of batch) tally[await check(input)]++
    if (await coverage.hasGrown()) pool.push(...batch)
  }
  await coverage.stop()
  return { ...tally, pool: pool.length }
}

const nameOf = (error: unknown): string =>
  error instanceof Error ? `${error.name} ${error.message.replaceAll(/\d+/g, '0').slice(0, 40)}` : String(error)

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause === undefined ? '' : `\ncaused by ${describe(error.cause)}`
  return `${error.stack ?? error.message}${cause}`.slice(0, 4000)
}

/** Removes parts of an input while the same failure comes of it. */
async function shrink(input: Buffer, name: string, check: Parser['check']): Promise<Buffer> {
  let smallest = input
  let tries = 0
  for (let size = Math.ceil(input.length / 2); size >= 1 && tries < MAX_SHRINKS; size = Math.floor(size / 2)) {
    for (let at = 0; at < smallest.length && tries < MAX_SHRINKS; ) {
      const candidate = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)])
      tries++
      const failed = await Promise.resolve(candidate)
        .then(check)
        .then(
          () => undefined,
          (error: unknown) => nameOf(error),
        )
      if (failed === name) smallest = candidate
      else at += size
    }
  }
  return smallest.subarray(0, MAX_INPUT_BYTES)
}
