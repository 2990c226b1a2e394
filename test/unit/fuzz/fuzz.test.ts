import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { countOf, isSoak } from '../../support/counts.ts'
import { seedsOf } from '../../support/seeds.ts'
import { createFuzzThread } from './fuzz-thread.ts'
import { PARSERS } from './parsers/index.ts'
import type { Failure } from './run.ts'

const FOUND = path.join(import.meta.dirname, '../../../.data/fuzz')
/** Seconds for each parser and seed in a soak run: ten minutes in all. */
const SECONDS = Number(process.env.FUZZ_SECONDS ?? 13)

const thread = createFuzzThread()
afterAll(() => thread.close())

/** Keeps the input of a failure as a file for the corpus, and returns the failure in words. */
function keep(name: string, { problem, input }: Failure): string {
  const bytes = Buffer.from(input, 'base64')
  const file = path.join(FOUND, name, createHash('sha256').update(bytes).digest('hex').slice(0, 12))
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, bytes)
  return `${file}: ${JSON.stringify(bytes.toString('latin1').slice(0, 300))}\n${problem}`
}

describe.each(seedsOf('fuzz'))('any bytes (seed %i)', (seed) => {
  it.each(PARSERS.map(({ name }) => name))('are accepted or refused as %s', async (name) => {
    const effort = { inputs: countOf('fuzzedInputs'), seconds: isSoak ? SECONDS : undefined }
    const fuzzed = await thread.run({ name, seed, ...effort })
    if ('failure' in fuzzed) throw new Error(keep(name, fuzzed.failure))
    if (isSoak) process.stderr.write(`fuzz ${name}: ${JSON.stringify({ seed, ...fuzzed })}\n`)
    expect(fuzzed.accepted).toBeGreaterThan(0)
    expect(fuzzed.refused).toBeGreaterThan(0)
  })
})
