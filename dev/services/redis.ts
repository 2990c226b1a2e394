import { mkdir } from 'node:fs/promises'
import { createConnection } from 'node:net'
import path from 'node:path'
import { findExecutable, findOnPath, type Log, lastLines, runCommand } from './command.ts'
import { type Service, type ServiceOptions, startProcess } from './process.ts'

const INSTALL_TIMEOUT_MS = 300_000
const PROBE_TIMEOUT_MS = 2000

/** Folders of Homebrew's programs, for when they are not on the PATH of this process. */
const BREW_FOLDERS = ['/opt/homebrew/bin', '/usr/local/bin']

type Installation = {
  tool: string
  steps: string[][]
}

function listInstallations(): Installation[] {
  // RUNLEVEL=1 keeps Debian from starting the packaged service, which would take port 6379 for itself.
  const apt = ['env', 'DEBIAN_FRONTEND=noninteractive', 'RUNLEVEL=1', 'apt-get']
  const asRoot = process.getuid?.() === 0 ? apt : ['sudo', '-n', ...apt]
  const installWithApt = [...asRoot, 'install', '-y', '--no-install-recommends', 'redis-server']
  return [
    { tool: 'apt-get', steps: [[...asRoot, 'update'], installWithApt] },
    { tool: 'brew', steps: [['brew', 'install', 'redis']] },
  ]
}

async function runSteps(steps: string[][], log: Log): Promise<string | undefined> {
  for (const step of steps) {
    const [command = '', ...args] = step
    log(`redis-server is missing; running: ${step.join(' ')}`)
    const onProgress = (seconds: number) => log(`still running ${command} (${seconds} s)`)
    const result = await runCommand(command, args, { timeoutMs: INSTALL_TIMEOUT_MS, onProgress })
    if (!result.succeeded) return `"${step.join(' ')}" failed: ${lastLines(result.output, 3)}`
  }
  return undefined
}

async function installRedis(log: Log): Promise<string> {
  const tried = ['redis-server on the PATH: not found']
  for (const { tool, steps } of listInstallations()) {
    if ((await findOnPath(tool)) === undefined) {
      tried.push(`${tool}: not on the PATH`)
      continue
    }
    const failure = await runSteps(steps, log)
    const found = await findRedis()
    if (found !== undefined) return found
    tried.push(failure ?? `${tool} ran, but left no redis-server`)
  }
  const list = tried.map((line) => `  - ${line}`).join('\n')
  throw new Error(
    `Redis is needed and could not be installed. Tried:\n${list}\n` +
      'Install redis-server yourself, or set REDIS_URL to a Redis that runs.',
  )
}

async function findRedis(): Promise<string | undefined> {
  return (await findOnPath('redis-server')) ?? (await findExecutable('redis-server', BREW_FOLDERS))
}

function probeRedis(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port })
    socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error('no answer')))
    socket.once('error', reject)
    socket.once('connect', () => socket.write('PING\r\n'))
    socket.once('data', (answer) => {
      socket.destroy()
      // While it loads its data Redis accepts connections and answers "-LOADING".
      if (answer.toString().startsWith('+PONG')) resolve()
      else reject(new Error(answer.toString().trim()))
    })
  })
}

function redisArguments(port: number, folder: string): string[] {
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir: folder,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    daemonize: 'no',
  }
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
}

/** Starts Redis on the loopback interface with an append-only file. */
export async function startRedis({ dataDir, port, log }: ServiceOptions): Promise<Service> {
  const command = (await findRedis()) ?? (await installRedis(log))
  const folder = path.join(dataDir, 'data')
  await mkdir(folder, { recursive: true })
  return startProcess({
    name: 'redis',
    command,
    args: redisArguments(port, folder),
    dataDir,
    url: `redis://127.0.0.1:${port}`,
    stopSignal: 'SIGTERM',
    log,
    probe: () => probeRedis(port),
  })
}
