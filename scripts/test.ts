/** npm test: jest against real services of its own, on free ports, with data that is removed afterwards. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ROOT, serviceEnvironment } from '../dev/development.ts'
import { freePorts, type RunningServices, startServices, stopLeftovers } from '../dev/services/index.ts'
import { isAlive } from '../dev/services/pid-file.ts'
import { createTemplateDatabase } from '../dev/services/postgres.ts'
import { print, printError } from '../dev/terminal.ts'
import { type Counts, formatCounts, formatSlowest, readCounts, readFileTimes, readReport } from '../dev/test-results.ts'
import { createTestServices } from '../dev/test-services.ts'

const TEMPLATE_DATABASE = 'agent_sessions_template'
/** Jest writes its results when the last test has ended; what still runs this long afterwards has leaked. */
const LEAK_GRACE_MS = 15_000

const dataFolder = path.join(ROOT, '.data')
const dataDir = path.join(dataFolder, `test-${process.pid}`)
const resultFile = path.join(dataDir, 'jest.json')

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
  const { applyMigrations } = await import('../platform/migrate.ts')
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

/** Jest's exit code; a signal counts as a failure. */
function runJest(args: string[], env: Record<string, string>): Promise<number> {
  const flags = ['--disable-warning=ExperimentalWarning', '--experimental-vm-modules']
  const jest = path.join(ROOT, 'node_modules', 'jest', 'bin', 'jest.js')
  const report = ['--json', `--outputFile=${resultFile}`]
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...flags, jest, ...report, ...args], {
      cwd: ROOT,
      env: { ...process.env, ...env, NODE_ENV: 'test' },
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

/** Bundled once for all workers of the run. */
async function writeWorkflowBundle(): Promise<string> {
  const { bundleWorkflows } = await import('../worker/bundle.ts')
  const file = path.join(dataDir, 'workflow-bundle.js')
  await writeFile(file, (await bundleWorkflows()).code)
  return file
}

async function runTests(args: string[]): Promise<Counts> {
  const services = await start()
  try {
    const [templateUrl, workflowBundle] = await Promise.all([
      prepareTemplate(services.databaseUrl),
      writeWorkflowBundle(),
    ])
    const env = {
      ...serviceEnvironment(services),
      TEST_TEMPLATE_DATABASE_URL: templateUrl,
      WORKFLOW_BUNDLE: workflowBundle,
    }
    const testServices = await createTestServices(env)
    const exitCode = await runJest(args, { ...env, TEST_SERVICES_URL: testServices.url })
    const problems = await testServices.stop()
    for (const problem of problems) printError(problem)
    const report = await readReport(resultFile)
    print(formatSlowest(readFileTimes(report), ROOT))
    const counts = readCounts(report, exitCode)
    return { ...counts, failed: counts.failed + problems.length }
  } finally {
    await services.stop()
  }
}

async function main(): Promise<number> {
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
