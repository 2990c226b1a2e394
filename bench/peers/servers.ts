import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePorts } from '../../dev/services/ports.ts'
import { type Service, startProcess } from '../../dev/services/process.ts'
import type { Processes } from '../cpu.ts'
import { print } from '../report.ts'
import { type Ground, readServiceProcesses } from '../site.ts'
import type { PeerName } from './client.ts'

/** Peer that runs. Its processes are its own, and Postgres and Redis. */
export type Peer = { name: PeerName; url: string; processes: Processes; stop(): Promise<void> }

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const INSTALL_MS = 600_000

/** Installs the peers' packages outside the repository, once for each set of versions. Returns their folder. */
export async function installPeers(): Promise<string> {
  const [python, node] = await Promise.all(
    ['requirements.txt', 'package.json'].map((name) => readFile(path.join(FOLDER, name))),
  )
  const version = createHash('sha256').update(`${python}${node}`).digest('hex').slice(0, 12)
  const folder = path.join(homedir(), '.cache/agent-sessions-bench', version)
  const installed = path.join(folder, 'installed')
  if (
    await access(installed).then(
      () => true,
      () => false,
    )
  )
    return folder
  print(`Installing the peers' packages into ${folder}`)
  const run = (command: string, args: string[]) =>
    promisify(execFile)(command, args, { cwd: folder, timeout: INSTALL_MS, maxBuffer: 1 << 26 })
  await mkdir(folder, { recursive: true })
  await copyFile(path.join(FOLDER, 'package.json'), path.join(folder, 'package.json'))
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'])
  await run('python3', ['-m', 'venv', 'python'])
  await run('python/bin/pip', ['install', '--quiet', '-r', path.join(FOLDER, 'requirements.txt')])
  await writeFile(installed, '')
  return folder
}

/** Program of a peer, and a path that answers once it is ready. */
type Program = { command: string; args: string[]; readyPath: string }

const programOf = (name: PeerName, packages: string, port: number, databaseUrl: string): Program => {
  const bin = path.join(packages, 'python/bin')
  const at = ['--host', '127.0.0.1', '--port', `${port}`]
  const durable = (): Program => ({
    command: process.execPath,
    args: ['--disable-warning=ExperimentalWarning', path.join(FOLDER, 'durable-server.ts'), name],
    readyPath: '/',
  })
  const programs: Record<PeerName, () => Program> = {
    agno: () => ({ command: `${bin}/python`, args: [path.join(FOLDER, 'agno_app.py')], readyPath: '/health' }),
    langgraph: () => ({
      command: `${bin}/langgraph`,
      // Its default of 10 runs at a time would measure the queue.
      args: ['dev', '--no-browser', '--no-reload', '--n-jobs-per-worker', '400', '--server-log-level', 'ERROR', ...at],
      readyPath: '/ok',
    }),
    adk: () => ({
      command: `${bin}/adk`,
      args: [
        ...['api_server', ...at, '--log_level', 'error', '--session_service_uri'],
        databaseUrl.replace('postgresql:', 'postgresql+asyncpg:'),
        path.join(FOLDER, 'adk'),
      ],
      readyPath: '/list-apps',
    }),
    dbos: durable,
    restate: durable,
  }
  return programs[name]()
}

/** No peer reports its use to its makers. */
const QUIET = {
  AGNO_TELEMETRY: 'false',
  LANGSMITH_TRACING: 'false',
  LANGGRAPH_CLI_NO_ANALYTICS: '1',
  RESTATE_DISABLE_TELEMETRY: 'true',
  PYTHONDONTWRITEBYTECODE: '1',
}

/** Starts a peer with a database of its own, and its model at the provider. */
export async function startPeer(
  name: PeerName,
  { services, dataDir }: Ground,
  packages: string,
  providerPort: number,
): Promise<Peer> {
  const [port = 0, ...more] = await freePorts(5)
  const DATABASE_URL = await createDatabase(services.databaseUrl, name)
  const home = path.join(dataDir, name)
  await mkdir(path.join(home, '.adk'), { recursive: true })
  await writeFile(path.join(home, '.adk/config.json'), '{"telemetry": false}')
  const graphs = { bench: `${FOLDER}langgraph_app.py:graph` }
  await writeFile(path.join(home, 'langgraph.json'), JSON.stringify({ dependencies: ['.'], graphs }))
  const env = {
    ...QUIET,
    DATABASE_URL,
    HOME: home,
    PEER_PACKAGES: `${packages}/`,
    PORT: `${port}`,
    PROVIDER_URL: `http://127.0.0.1:${providerPort}/v1`,
    REDIS_URL: services.redisUrl,
  }
  const engine = name === 'restate' ? await startRestateServer(dataDir, packages, more) : undefined
  const { command, args, readyPath } = programOf(name, packages, port, DATABASE_URL)
  const url = `http://127.0.0.1:${port}`
  const own = { ...env, ...engine?.env }
  const spec = { name, command, args, dataDir: home, url, env: own }
  const server = await start({ ...spec, readyUrl: url + readyPath }).catch(async (error) => {
    await engine?.server.stop()
    throw error
  })
  const { Postgres = [], Redis = [] } = await readServiceProcesses(dataDir)
  const engines: Record<PeerName, Processes> = {
    agno: { Postgres },
    dbos: { Postgres, Redis },
    langgraph: {},
    adk: { Postgres },
    restate: { Restate: engine === undefined ? [] : [engine.server.pid], Redis },
  }
  return {
    name,
    url,
    processes: { [name]: [server.pid], ...engines[name] },
    stop: async () => {
      await server.stop()
      await engine?.server.stop()
    },
  }
}

/** Starts Restate's server, and returns the environment of the program with its handlers. */
async function startRestateServer(
  dataDir: string,
  packages: string,
  [ingress = 0, admin = 0, node = 0, handlers = 0]: number[],
): Promise<{ server: Service; env: Record<string, string> }> {
  const folder = path.join(dataDir, 'restate-server')
  const server = await start({
    name: 'restate-server',
    command: path.join(packages, 'node_modules/@restatedev/restate-server-linux-x64/bin/restate-server'),
    args: [],
    dataDir: folder,
    url: `http://127.0.0.1:${ingress}`,
    readyUrl: `http://127.0.0.1:${admin}/health`,
    env: {
      ...QUIET,
      RESTATE_LISTEN_MODE: 'tcp',
      RESTATE_BIND_IP: '127.0.0.1',
      RESTATE_BIND_PORT: `${node}`,
      RESTATE_INGRESS__BIND_PORT: `${ingress}`,
      RESTATE_ADMIN__BIND_PORT: `${admin}`,
    },
  })
  const at = (port: number) => `http://127.0.0.1:${port}`
  return { server, env: { RESTATE_INGRESS: at(ingress), RESTATE_ADMIN: at(admin), HANDLER_PORT: `${handlers}` } }
}

type Start = { name: string; command: string; args: string[]; dataDir: string; url: string; readyUrl: string }

const start = ({ readyUrl, ...program }: Start & { env: Record<string, string> }): Promise<Service> =>
  startProcess({
    ...program,
    stopSignal: 'SIGTERM',
    log: () => {},
    probe: async () => {
      const answer = await fetch(readyUrl)
      if (!answer.ok) throw new Error(`${readyUrl}: ${answer.status}`)
    },
  })

async function createDatabase(url: string, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE DATABASE peer_${name}`)
  await client.end()
  const own = new URL(url)
  own.pathname = `/peer_${name}`
  own.protocol = 'postgresql:'
  return own.toString()
}
