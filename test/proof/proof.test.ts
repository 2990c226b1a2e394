import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { startService } from '../support/service.ts'
import { withClient } from '../support/temporal.ts'
import { BUGS, type Bug } from './bugs.ts'
import { RETENTION_MS } from './play.ts'
import { type Proof, prove } from './prove.ts'
import { type Stage, startStage } from './provider.ts'
import { type Found, formatReport, inOne, isComplete, keep, neverHappened, PARTS, type Results } from './report.ts'
import { startWorld } from './world.ts'

/** `npm run proof`, which runs for hours. HISTORIES, SEED, HISTORY and BUG choose a part of it. */
const isWhole = process.env.PROOF === '1'
const { SEED = '1', HISTORY, BUG, HISTORIES } = process.env
const counts = isWhole ? { quiet: 1000, disturbed: 1000 } : { quiet: 10, disturbed: 4 }
const isAll = isWhole && !HISTORY && !HISTORIES
const countOf = (kind: 'quiet' | 'disturbed') => (HISTORY ? 1 : Number(HISTORIES ?? counts[kind]))
/** Worlds that share the histories with faults: each waits more than it works. */
const WORLDS = isAll ? 2 : 1
/** Parts of the histories with faults. Each can be run by itself, and its results are kept. */
const parts = Array.from({ length: isAll ? PARTS : 1 }, (_, index) => index + 1)
/** Seeds are apart: after a failure, a world goes on with the next one. */
const seedsOf = (part: number) =>
  Array.from({ length: WORLDS }, (_, world) => Number(SEED) + ((part - 1) * WORLDS + world) * 1000)
/** Histories in which a planted bug has to be found. */
const MOST_FOR_A_BUG = 200
/** Longest time without progress while a process is there to serve. */
const STUCK_MS = 5000
/** Time in which a failing history is made smaller. */
const SHRINK_MS = isWhole ? 120_000 : 0
const TIME_LIMIT_MS = 6 * 3_600_000
const REPORT = 'docs/proof-report.md'
/** Folder of the results of each commit, until all parts of its proof have run. */
const KEPT = '.data/proof'

let stage: Stage
beforeAll(async () => {
  stage = await startStage()
})
afterAll(() => stage.close())

const settings = () => ({
  DEFAULT_OPENAI_API_KEY: 'sk-none',
  DEFAULT_OPENAI_BASE_URL: stage.baseUrl,
  DELTA_RETENTION_SECS: String(RETENTION_MS / 1000),
})

/** Runs retention now. A Temporal that is away runs it later. */
const runRetention = ({ TEMPORAL_ADDRESS = '', TEMPORAL_TASK_QUEUE = '' }: Record<string, string>) =>
  withClient({ config: { TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE: 'default' } }, (client) =>
    client.schedule.getHandle(`${TEMPORAL_TASK_QUEUE}-retention`).trigger(),
  ).catch(() => {})

const note = (line: string) => void (isWhole && process.stdout.write(`${line}\n`))
const wanted = (count: number, seed = Number(SEED)) => ({
  seed,
  count: HISTORY ? 1 : count,
  path: HISTORY,
  shrinkMs: SHRINK_MS,
  // Beside other tests anything may take a while.
  stuckMs: isWhole ? STUCK_MS : Number.POSITIVE_INFINITY,
})

async function proveQuiet(): Promise<Proof> {
  const service = await startService({ retention: { deltasMs: RETENTION_MS }, environment: settings() })
  const { TEMPORAL_ADDRESS, TEMPORAL_TASK_QUEUE } = service.config
  const expire = () => runRetention({ TEMPORAL_ADDRESS, TEMPORAL_TASK_QUEUE })
  const place = { urls: [service.url], stage, servedSince: () => 0, isAnyAway: () => false, expire }
  try {
    return await prove(place, undefined, wanted(countOf('quiet')), note)
  } finally {
    await service.stop()
  }
}

async function proveInWorlds(part: number): Promise<Proof> {
  const count = countOf('disturbed') / parts.length / WORLDS
  return inOne(await Promise.all(seedsOf(part).map((seed) => proveDisturbed(count, seed))))
}

async function proveDisturbed(count: number, seed: number, bug?: Bug): Promise<Proof> {
  const world = await startWorld({ settings: settings(), ...(bug && { plants: bug.edits }) })
  const expire = () => runRetention(world.environment)
  const { urls, servedSince, isAnyAway } = world
  const place = { urls, stage, servedSince, isAnyAway, expire }
  try {
    return await prove(place, world, { ...wanted(count, seed), ...(bug && { shrinkMs: 0, stopAt: 1 }) }, note)
  } finally {
    await world.close()
  }
}

function expectProof({ passed, failed }: Proof, count: number): void {
  expect(failed).toEqual([])
  expect(passed).toHaveLength(count)
}

async function findBug(bug: Bug): Promise<Found> {
  const { passed, failed } = await proveDisturbed(MOST_FOR_A_BUG, Number(SEED), bug)
  return { after: passed.length + 1, failed: failed[0] }
}

const chosen = BUG === undefined ? undefined : BUGS[Number(BUG) - 1]
const results: Partial<Results> = {}
afterEach(async () => {
  if (!isAll) return
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const release = git('describe', '--always', '--dirty')
  const all = await keep(path.join(KEPT, `${release}-${SEED}.json`), results)
  if (!isComplete(all)) return
  const date = new Date().toISOString().slice(0, 10)
  await writeFile(REPORT, formatReport(all, { seeds: parts.flatMap(seedsOf), release, date }))
  expect(neverHappened(all)).toEqual([])
})

describe('the service', () => {
  const isUnplanted = chosen === undefined ? it : it.skip
  isUnplanted(
    'does in random histories what its model does',
    async () => {
      results.quiet = await proveQuiet()
      expectProof(results.quiet, countOf('quiet'))
    },
    TIME_LIMIT_MS,
  )

  isUnplanted.each(parts)(
    `loses and doubles nothing through faults: part %i of ${parts.length}`,
    async (part) => {
      const proof = await proveInWorlds(part)
      results.disturbed = { ...results.disturbed, [part]: proof }
      expectProof(proof, countOf('disturbed') / parts.length)
    },
    TIME_LIMIT_MS,
  )
})

describe('the histories', () => {
  // Each bug needs a world of its own, for minutes: only in `npm run proof`.
  const whenWhole =
    isWhole && (HISTORY === undefined || chosen !== undefined) ? it.each(chosen ? [chosen] : BUGS) : it.skip.each(BUGS)
  whenWhole(
    'find: $name',
    async (bug) => {
      const found = await findBug(bug)
      results.found = { ...results.found, [BUGS.indexOf(bug) + 1]: found }
      expect(found.failed).toBeDefined()
    },
    TIME_LIMIT_MS,
  )
})
