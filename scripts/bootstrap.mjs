// Runs a TypeScript file of this repository: node scripts/bootstrap.mjs <script.ts> [arguments]
// Runs on the system's own Node (18 or later) with nothing installed: it installs the packages, including the Node
// release of this project, generates the database client and the typed client, and hands over. Without a script it
// only prepares.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const NODE = path.join(ROOT, 'node_modules', '.bin', 'node')
const SCHEMA = path.join(ROOT, 'prisma', 'schema.prisma')
const GENERATED = path.join(ROOT, 'prisma', 'generated')
const SCHEMA_STAMP = path.join(GENERATED, '.schema-hash')
/** Sources of the typed client in client/dist, and of the element <agent-chat> in embed/dist. */
const CLIENT_SOURCES = [
  'contract',
  'api/http/openapi.ts',
  'client',
  'embed',
  'scripts/client-operations.ts',
  'scripts/client.ts',
  'scripts/embed.ts',
  'scripts/hey-api.ts',
  'scripts/licenses.ts',
  'package-lock.json',
]
/** Sources of the console in console/dist, besides the client's. */
const CONSOLE_SOURCES = ['console', 'scripts/console.ts']
const CLIENT_STAMP = path.join(ROOT, 'client', 'dist', '.source-hash')
const CONSOLE_STAMP = path.join(ROOT, 'console', 'dist', '.source-hash')
const LOCK = path.join(ROOT, '.data', 'bootstrap.lock')
const LOCK_POLL_MS = 250
/** Has glibc give large blocks back when they are freed; see docs/decisions/0014-http-bodies.md. As in the Dockerfile. */
const MALLOC = { MALLOC_MMAP_THRESHOLD_: '1048576', MALLOC_TRIM_THRESHOLD_: '1048576' }
/** Young objects get 24 MB: with more, an idle process keeps 100 MB that it used once. As in the Dockerfile. */
const FLAGS = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8']
/** Where Node keeps the compiled code of modules, which saves a third of a start. */
const COMPILED = path.join(ROOT, 'dist', 'compiled')

function print(message) {
  process.stdout.write(`${message}\n`)
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

function readText(file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

function readPackages(file) {
  const { '': _root, ...packages } = JSON.parse(readText(file) ?? '{}').packages ?? {}
  return packages
}

/**
 * Compares package-lock.json with node_modules/.package-lock.json, which npm writes as the last step of an
 * installation.
 */
function isInstalled() {
  if (!fs.existsSync(NODE)) return false
  const installed = readPackages(path.join(ROOT, 'node_modules', '.package-lock.json'))
  const locked = readPackages(path.join(ROOT, 'package-lock.json'))
  const isStrayPackage = (name) => locked[name] === undefined
  if (Object.keys(installed).some(isStrayPackage)) return false
  return Object.entries(locked).every(([name, { version, integrity, optional, devOptional }]) => {
    const found = installed[name]
    // Packages for other systems are optional and not installed.
    if (found === undefined) return Boolean(optional || devOptional)
    return found.version === version && found.integrity === integrity
  })
}

function hashSchema() {
  const parts = [SCHEMA, path.join(ROOT, 'prisma.config.ts'), path.join(ROOT, 'node_modules/prisma/package.json')]
  const hash = createHash('sha256')
  for (const file of parts) hash.update(readText(file) ?? '')
  return hash.digest('hex')
}

function isGenerated() {
  return readText(SCHEMA) === undefined || readText(SCHEMA_STAMP) === hashSchema()
}

/** Lists a file, or all files of a folder but what was made from the others. */
function listFiles(file) {
  if (!fs.statSync(file, { throwIfNoEntry: false })?.isDirectory()) return [file]
  const names = fs.readdirSync(file).filter((name) => !['dist', 'generated', 'node_modules'].includes(name))
  return names.sort().flatMap((name) => listFiles(path.join(file, name)))
}

function hashSources(sources) {
  const hash = createHash('sha256')
  for (const source of sources) {
    for (const file of listFiles(path.join(ROOT, source))) hash.update(`${file}\0${readText(file)}\0`)
  }
  return hash.digest('hex')
}

const isClientGenerated = () => readText(CLIENT_STAMP) === hashSources(CLIENT_SOURCES)
const hashConsole = () => hashSources([...CLIENT_SOURCES, ...CONSOLE_SOURCES])
const isConsoleBuilt = () => readText(CONSOLE_STAMP) === hashConsole()

function run(command, args, env) {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, ...env } })
  if (error) fail(`"${command} ${args.join(' ')}" could not be run: ${error.message}`)
  if (status !== 0) fail(`"${command} ${args.join(' ')}" failed; see above.`)
}

function install() {
  print('Installing the npm packages (npm ci); the first time this takes a minute or two.')
  // npm must not run on the Node in node_modules, which it is about to replace.
  const ownFolder = path.dirname(NODE)
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter((folder) => folder !== ownFolder)
  // NODE_ENV=production would leave out what the tests need.
  run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
    PATH: folders.join(path.delimiter),
  })
}

function generate() {
  print('Generating the database client (prisma generate).')
  const prisma = path.join(ROOT, 'node_modules', 'prisma', 'build', 'index.js')
  // Prisma would download its native engine, which generating does not use: any file that exists satisfies it.
  const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: '1' }
  run(NODE, [prisma, 'generate', '--no-hints'], env)
  fs.mkdirSync(GENERATED, { recursive: true })
  fs.writeFileSync(SCHEMA_STAMP, hashSchema())
}

function generateClient() {
  print('Generating the typed client (client/dist) and the element <agent-chat> (embed/dist).')
  run(NODE, ['--disable-warning=ExperimentalWarning', path.join('scripts', 'client.ts')])
  fs.writeFileSync(CLIENT_STAMP, hashSources(CLIENT_SOURCES))
}

function buildConsole() {
  print('Building the console (console/dist).')
  run(NODE, ['--disable-warning=ExperimentalWarning', path.join('scripts', 'console.ts')])
  fs.writeFileSync(CONSOLE_STAMP, hashConsole())
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function tryLock() {
  // Written aside and then linked, so that a lock always names its owner.
  const draft = `${LOCK}.${process.pid}`
  fs.mkdirSync(path.dirname(LOCK), { recursive: true })
  fs.writeFileSync(draft, String(process.pid))
  try {
    fs.linkSync(draft, LOCK)
    return true
  } catch {
    return false
  } finally {
    fs.rmSync(draft, { force: true })
  }
}

/** Takes the lock that keeps two runs of one clone from installing at the same time. */
async function lock() {
  let printed = false
  while (!tryLock()) {
    const owner = Number.parseInt(readText(LOCK) ?? '', 10)
    if (Number.isInteger(owner) && !isAlive(owner)) fs.rmSync(LOCK, { force: true })
    else if (!printed) {
      print(`Waiting for process ${owner}, which is installing (its lock: ${LOCK}).`)
      printed = true
    }
    await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS))
  }
  process.on('exit', () => {
    if (readText(LOCK) === String(process.pid)) fs.rmSync(LOCK, { force: true })
  })
}

/** Enables the commit-msg hook in a git clone that has no hooks of its own; a worktree uses its clone's hooks. */
function useHooks() {
  if (!fs.statSync(path.join(ROOT, '.git'), { throwIfNoEntry: false })?.isDirectory()) return
  const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
  // Status 1: not set, neither in this clone nor globally for the user. Without git there is no status.
  if (git('config', '--get', 'core.hooksPath').status === 1) git('config', 'core.hooksPath', '.githooks')
}

async function prepare() {
  useHooks()
  if (isInstalled() && isGenerated() && isClientGenerated() && isConsoleBuilt()) return
  await lock()
  if (!isInstalled()) install()
  if (!isGenerated()) generate()
  if (!isClientGenerated()) generateClient()
  if (!isConsoleBuilt()) buildConsole()
  fs.rmSync(LOCK, { force: true })
}

function handOver(script, args) {
  const child = spawn(NODE, [...FLAGS, script, ...args], {
    cwd: ROOT,
    env: { ...MALLOC, NODE_COMPILE_CACHE: COMPILED, ...process.env },
    stdio: 'inherit',
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // The terminal sends Ctrl-C to the child too; a second copy would look like a second Ctrl-C.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
    })
  }
  child.on('error', (error) => fail(`${NODE} could not be run: ${error.message}`))
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(name)
    process.kill(process.pid, signal)
  })
}

if (Number.parseInt(process.versions.node, 10) < 18) {
  fail(`This project needs Node.js 18 or later to install itself; this is ${process.version}. See https://nodejs.org`)
}
await prepare()
const [script, ...args] = process.argv.slice(2)
if (script !== undefined) handOver(script, args)
