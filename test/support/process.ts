import { type ChildProcess, execFile, type StdioOptions, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { guardAgainstLeak } from '../../dev/services/process.ts'
import { PATIENCE_MS } from './http.ts'
import type { TestService } from './service.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Process of the service as in a deployment, which a test can kill. */
export type ServiceProcess = {
  pid: number
  /** Lines written to standard output and standard error. */
  lines: string[]
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>
  /** Sends SIGTERM. Resolves when the process has ended. */
  stop(): Promise<void>
  /** Sends SIGSTOP, so the process stays alive but does nothing until `thaw`. */
  freeze(): void
  thaw(): void
}

/** Log message with which each entry point reports that it is ready. */
const READY = {
  'worker/main.ts': 'worker polls',
  'api/main.ts': 'API listens',
  'main.ts': 'worker polls',
  'test/support/lab-worker.ts': 'worker polls',
} as const
type EntryPoint = keyof typeof READY

/** The service that a process joins. */
export type Joined = Pick<TestService, 'environment'>

/**
 * Prisma's WebAssembly is not optimised: that takes a sixth of a start, and these processes end too soon to need it.
 */
const NODE_OPTIONS = ['--disable-warning=ExperimentalWarning', '--liftoff-only']

/** What a process has in addition to the service: options of Node, pipes, and messages with which it is ready. */
export type Instrumented = {
  node: string[]
  pipes: 'pipe'[]
  ready: string[]
  onStart(child: ChildProcess): void
}

const running = new Set<ServiceProcess>()

/** Kills all processes that are still running, for use in afterAll. */
export async function killProcesses(): Promise<void> {
  await Promise.all([...running].map((process) => process.kill()))
}

export const startWorkerProcess = async (
  service: Joined,
  environment: Record<string, string> = {},
): Promise<ServiceProcess> => (await startProcess('worker/main.ts', service, environment)).process

/**
 * Starts a worker that also has the lab's tools. The service needs `capabilities: [createLab().capability]` to offer
 * them.
 */
export const startLabWorkerProcess = async (
  service: Joined,
  environment: Record<string, string> = {},
): Promise<ServiceProcess> => (await startProcess('test/support/lab-worker.ts', service, environment)).process

/**
 * Starts an API process, or with `main.ts` one with API and worker. It uses a free port unless PORT is given, and runs
 * the code of this checkout unless `folder` has another release.
 */
export async function startApiProcess(
  service: Joined,
  entryPoint: 'api/main.ts' | 'main.ts' = 'api/main.ts',
  environment: Record<string, string> = {},
  folder = ROOT,
): Promise<ServiceProcess & { url: string }> {
  const own = { HOST: '127.0.0.1', PORT: '0', ...environment }
  const { process, port } = await startProcess(entryPoint, service, own, folder)
  return { ...process, url: `http://127.0.0.1:${port}` }
}

/** Starts a process whose modules are edited while they are loaded. */
export const startInstrumentedProcess = async (
  entryPoint: 'api/main.ts' | 'main.ts',
  service: Joined,
  environment: Record<string, string>,
  instrumented: Instrumented,
): Promise<ServiceProcess> => (await startProcess(entryPoint, service, environment, ROOT, instrumented)).process

/** Runs a program of the service that ends by itself. Returns everything that it printed. */
export const runToEnd = (program: string, environment: Record<string, string>) =>
  new Promise<{ code: number; output: string }>((resolve) => {
    const options = { cwd: ROOT, env: { ...process.env, ...environment } }
    execFile(process.execPath, [...NODE_OPTIONS, program], options, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    )
  })

/** Returns the lines of all processes that are starting or running. */
export const linesOfProcesses = (): string[] => [...running].flatMap(({ lines }) => lines)

/** Stops all processes that are starting or running. */
export async function stopProcesses(): Promise<void> {
  await Promise.all([...running].map((process) => process.stop()))
}

async function startProcess(
  entryPoint: EntryPoint,
  service: Joined,
  environment: Record<string, string>,
  folder = ROOT,
  instrumented?: Instrumented,
) {
  const stdio: StdioOptions = ['ignore', 'pipe', 'pipe', ...(instrumented?.pipes ?? [])]
  const child = spawn(process.execPath, [...NODE_OPTIONS, ...(instrumented?.node ?? []), entryPoint], {
    cwd: folder,
    env: {
      ...process.env,
      ...service.environment,
      ...environment,
      LOG_LEVEL: 'info',
    },
    stdio,
  })
  instrumented?.onStart(child)
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const { pid, stdout, stderr } = child
  if (pid === undefined || !stdout || !stderr) throw new Error(`${entryPoint} could not be started`)
  const guard = guardAgainstLeak(pid, 'SIGKILL')
  const end = (signal: NodeJS.Signals) => async () => {
    child.kill(signal)
    await exited
  }
  const signal = (name: NodeJS.Signals) => () => void child.kill(name)
  const lines: string[] = []
  for (const output of [stdout, stderr]) createInterface({ input: output }).on('line', (line) => lines.push(line))
  createInterface({ input: stderr }).on('line', (line) => process.stderr.write(`${line}\n`))
  const started = {
    pid,
    lines,
    kill: end('SIGKILL'),
    stop: end('SIGTERM'),
    freeze: signal('SIGSTOP'),
    thaw: signal('SIGCONT'),
  }
  running.add(started)
  void exited.then(() => {
    guard.release()
    running.delete(started)
  })
  return { process: started, port: await untilReady(child, entryPoint, instrumented?.ready ?? readyOf(entryPoint)) }
}

const readyOf = (entryPoint: EntryPoint): string[] => [
  READY[entryPoint],
  ...(entryPoint === 'main.ts' ? ['API listens'] : []),
]

/** Reads the log until the process has said that it is ready. Resolves with the port, if it listens on one. */
function untilReady(child: ChildProcess, entryPoint: EntryPoint, messages: string[]): Promise<number | undefined> {
  const needed = new Set(messages)
  let port: number | undefined
  let last = ''
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${entryPoint} ${why}; its last line: ${last}`))
    const timer = setTimeout(() => fail('was not ready in time'), PATIENCE_MS)
    child.once('exit', () => {
      clearTimeout(timer)
      fail('ended')
    })
    if (child.stdout === null) return fail('has no output')
    createInterface({ input: child.stdout }).on('line', (line) => {
      last = line
      const entry = parseLine(line)
      port = entry.port ?? port
      if (process.env.TEST_LOG_LEVEL) process.stderr.write(`${line}\n`)
      if (!needed.delete(entry.msg) || needed.size > 0) return
      clearTimeout(timer)
      resolve(port)
    })
  })
}

function parseLine(line: string): { msg: string; port?: number } {
  try {
    return JSON.parse(line)
  } catch {
    return { msg: line }
  }
}
