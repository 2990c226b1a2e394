/**
 * npm test: runs Jest against its own services on free ports and removes their data afterwards. Unit tests alone need
 * no services. `--soak` runs test/soak and the files that use counts or seeds, with the large counts and fresh seeds
 * (test/support/counts.ts). `--faces` runs test/faces, and first installs the clients that it drives. `--proof` runs all
 * histories of test/proof, for hours, and writes docs/proof-report.md.
 */
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { ROOT, serviceEnvironment } from '../dev/development.ts'
import { freePorts, type RunningServices, startServices, stopLeftovers } from '../dev/services/index.ts'
import { isAlive } from '../dev/services/pid-file.ts'
import { createTemplateDatabase } from '../dev/services/postgres.ts'
import { print, printError } from '../dev/terminal.ts'
import { installFaceClients } from '../test/faces/install.ts'
import { formatUsage, readChildren, readEnded, readFileUsages } from '../test/run/cpu.ts'
import {
  type Counts,
  formatCounts,
  formatFailures,
  formatSlowest,
  readAssertions,
  readCounts,
  readFileTimes,
  readReport,
} from '../test/run/results.ts'
import { createTestServices } from '../test/run/shared-services.ts'

const TEMPLATE_DATABASE = 'agent_sessions_template'
/**
 * Time after the end of the last test, when Jest writes its results. A process that still runs then has leaked
 * something.
 */
const LEAK_GRACE_MS = 15_000

const dataFolder = path.join(ROOT, '.data')
const dataDir = path.join(dataFolder, `test-${process.pid}`)
const resultFile = path.join(dataDir, 'jest.json')
const cpuFile = path.join(dataDir, 'cpu.jsonl')

async function removeLeftovers(): Promise<void> {
  const names = await readdir(dataFolder).catch(() => [])
  for (const name of names) {
    const pid = /^test-(\d+)$/.exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    await stopLeftovers(path.join(dataFolder, name))
    await rm(path.join(dataFolder, name), { recursive: true, force: true })
  }
}

async function start(): Promise<RunningServices> {
  const [postgres = 0, redis = 0, temporal = 0, temporalUi = 0] = await freePorts(4)
  return startServices({
    dataDir,
    ports: { postgres, redis, temporal, temporalUi },
    env: process.env,
    log: print,
    durability: 'none',
    onServiceDied: (sentence) => printError(`\n!!! ${sentence}\n`),
  })
}

async function prepareTemplate(databaseUrl: string): Promise<string> {
  const { applyMigrations } = await import('../platform/postgres/migrate.ts')
  const templateUrl = await createTemplateDatabase(databaseUrl, TEMPLATE_DATABASE)
  await applyMigrations(templateUrl)
  return templateUrl
}

function killWhenLeaking(kill: () => void): NodeJS.Timeout {
  let endedAt: number | undefined
  return setInterval(() => {
    if (endedAt === undefined && existsSync(resultFile)) endedAt = Date.now()
    if (endedAt === undefined || Date.now() - endedAt < LEAK_GRACE_MS) return
    printError('Jest ended its tests but not its process: a test has left a timer, server or connection open.')
    kill()
  }, 1000)
}

const JEST = ['--disable-warning=ExperimentalWarning', path.join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js')]

/** Runs Jest and returns its exit code. A signal counts as a failure. */
function runJest(args: string[], env: Record<string, string>): Promise<number> {
  const isSoak = { ...process.env, ...env }.SOAK === '1'
  const isProof = { ...process.env, ...env }.PROOF === '1'
  // Soak tests take half an hour, and faces need clients that are installed only for them.
  const left = [
    '/node_modules/',
    ...(isSoak ? [] : ['/test/soak/']),
    ...(isProof ? [] : ['/test/proof/world']),
    ...(args.some(isOfFaces) ? [] : [`/${FACES}/`]),
  ]
  // Jest takes all words after this option for its patterns, up to the next option.
  const ignored = left.map((pattern) => `--testPathIgnorePatterns=${pattern}`)
  const limits = isSoak ? ['--testTimeout=600000'] : []
  const report = [...ignored, ...limits, '--json', `--outputFile=${resultFile}`]
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...JEST, ...report, ...args], {
      cwd: ROOT,
      env: { ...process.env, ...env, NODE_ENV: 'test', TEST_CPU_FILE: cpuFile },
      stdio: 'inherit',
    })
    const isWatching = args.some((argument) => argument.startsWith('--watch'))
    const watch = isWatching ? undefined : killWhenLeaking(() => child.kill('SIGKILL'))
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGTERM'))
    child.once('error', () => resolve(1))
    child.once('exit', (code) => {
      clearInterval(watch)
      resolve(code ?? 1)
    })
  })
}

const FACES = 'test/faces'
const isOfFaces = (argument: string) => argument.includes(FACES)

/** Installs the clients of the faces' tests. Returns the arguments with which Jest runs all of these tests, or those given. */
async function prepareFaces(args: string[]): Promise<string[]> {
  await installFaceClients(print)
  return args.some(isOfFaces) ? args : [...args, FACES]
}

const UNIT_TESTS = path.join(ROOT, 'test', 'unit') + path.sep

/** Returns whether Jest would run only unit tests with these arguments. */
async function isUnitOnly(args: string[]): Promise<boolean> {
  if (!args.some((argument) => argument.includes('unit'))) return false
  const { stdout } = await promisify(execFile)(process.execPath, [...JEST, '--listTests', ...args], { cwd: ROOT })
  const files = stdout.split('\n').filter((line) => line.endsWith('.test.ts'))
  return files.length > 0 && files.every((file) => file.startsWith(UNIT_TESTS))
}

/** Finds the test files that npm test runs only in part: they import counts or seeds. */
async function findSoakFiles(): Promise<string[]> {
  const files = await readdir(path.join(ROOT, 'test'), { recursive: true })
  const tests = files
    .filter((file) => file.endsWith('.test.ts') && !file.startsWith('faces'))
    .map((file) => path.join('test', file))
  const texts = await Promise.all(tests.map((file) => readFile(path.join(ROOT, file), 'utf8')))
  return tests.filter((_, index) => /support\/(counts|seeds)\.ts'/.test(texts[index] ?? ''))
}

/** Runs Jest with its own Postgres, Redis and Temporal, and with the services that test files share. */
async function runWithServices(args: string[], env: Record<string, string>): Promise<Counts> {
  const services = await start()
  try {
    // Made once, for the workers of all tests to find.
    const { bundleWorkflows } = await import('../worker/bundle.ts')
    const [templateUrl] = await Promise.all([prepareTemplate(services.databaseUrl), bundleWorkflows()])
    const own = {
      ...env,
      ...serviceEnvironment(services),
      TEST_TEMPLATE_DATABASE_URL: templateUrl,
    }
    const testServices = await createTestServices(own)
    const before = readEnded()
    const exitCode = await runJest(args, { ...own, TEST_SERVICES_URL: testServices.url })
    const jest = { name: 'jest, with the processes that tests start', seconds: readEnded() - before }
    print(formatUsage([jest, ...readChildren()], readFileUsages(cpuFile), ROOT))
    const problems = await testServices.stop()
    for (const problem of problems) printError(problem)
    const counts = await readResults(exitCode)
    return { ...counts, failed: counts.failed + problems.length }
  } finally {
    await services.stop()
  }
}

async function readResults(exitCode: number): Promise<Counts> {
  const report = await readReport(resultFile)
  print(formatSlowest(readFileTimes(report), ROOT))
  print(`${readAssertions(report)} assertions`)
  const failures = formatFailures(report, ROOT)
  if (failures !== '') print(failures)
  return readCounts(report, exitCode)
}

async function runTests(args: string[]): Promise<Counts> {
  const given = args.filter((argument) => !['--soak', '--faces', '--proof'].includes(argument))
  if (args.includes('--proof')) return runWithServices([...given, '--runInBand', 'test/proof'], { PROOF: '1' })
  if (args.includes('--faces')) return runWithServices(await prepareFaces(given), {})
  if (args.includes('--soak')) return runWithServices([...given, ...(await findSoakFiles())], { SOAK: '1' })
  if (await isUnitOnly(given)) return readResults(await runJest(given, {}))
  return runWithServices(given, {})
}

async function main(): Promise<number> {
  // Everything that the run starts loads its modules from one cache.
  process.env.NODE_COMPILE_CACHE = path.join(dataFolder, 'compile-cache')
  await removeLeftovers()
  await mkdir(dataDir, { recursive: true })
  const counts = await runTests(process.argv.slice(2)).catch((error): Counts => {
    printError(error instanceof Error ? (error.stack ?? error.message) : String(error))
    return { passed: 0, failed: 1, skipped: 0 }
  })
  await rm(dataDir, { recursive: true, force: true })
  print(formatCounts(counts))
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1
}

process.exitCode = await main()
process.exit()
