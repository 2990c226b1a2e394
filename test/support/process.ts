import { type ChildProcess, spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { guardAgainstLeak } from '../../dev/services/process.ts'
import { PATIENCE_MS } from './http.ts'
import type { TestService } from './service.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A process of the service, as a deployment has it, that can be killed. */
export type ServiceProcess = {
  pid: number
  /** What it has written, to its output or its errors, line by line. */
  lines: string[]
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
  /** SIGTERM; resolves when the process has ended by itself. */
  stop(): Promise<void>
  /** SIGSTOP: it lives and does nothing, until it is thawed. */
  freeze(): void
  thaw(): void
}

/** The log line by which each entry point says that it works. */
const READY = {
  'worker/main.ts': 'worker polls',
  'api/main.ts': 'API listens',
  'main.ts': 'worker polls',
  'test/support/lab-worker.ts': 'worker polls',
} as const
type EntryPoint = keyof typeof READY

const running = new Set<ServiceProcess>()

/** For afterAll: nothing that a test left behind goes on. */
export async function killProcesses(): Promise<void> {
  await Promise.all([...running].map((process) => process.kill()))
}

export const startWorkerProcess = async (
  service: TestService,
  environment: Record<string, string> = {},
): Promise<ServiceProcess> => (await startProcess('worker/main.ts', service, environment)).process

/** A worker that also has the lab's tools; the service needs `capabilities: [createLab().capability]` to offer them. */
export const startLabWorkerProcess = async (
  service: TestService,
  environment: Record<string, string> = {},
): Promise<ServiceProcess> => (await startProcess('test/support/lab-worker.ts', service, environment)).process

/** An API in a process of its own, or with `main.ts` API and worker in one; at any free port unless PORT says which. */
export async function startApiProcess(
  service: TestService,
  entryPoint: 'api/main.ts' | 'main.ts' = 'api/main.ts',
  environment: Record<string, string> = {},
): Promise<ServiceProcess & { url: string }> {
  const { process, port } = await startProcess(entryPoint, service, { HOST: '127.0.0.1', PORT: '0', ...environment })
  return { ...process, url: `http://127.0.0.1:${port}` }
}

async function startProcess(entryPoint: EntryPoint, service: TestService, environment: Record<string, string>) {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', entryPoint], {
    cwd: ROOT,
    env: {
      ...process.env,
      ...service.environment,
      ...environment,
      LOG_LEVEL: 'info',
      NODE_COMPILE_CACHE: path.join(ROOT, '.data', 'compile-cache'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  if (child.pid === undefined) throw new Error(`${entryPoint} could not be started`)
  const guard = guardAgainstLeak(child.pid, 'SIGKILL')
  const end = (signal: NodeJS.Signals) => async () => {
    child.kill(signal)
    await exited
  }
  const signal = (name: NodeJS.Signals) => () => void child.kill(name)
  const lines: string[] = []
  for (const output of [child.stdout, child.stderr])
    createInterface({ input: output }).on('line', (line) => lines.push(line))
  createInterface({ input: child.stderr }).on('line', (line) => process.stderr.write(`${line}\n`))
  const started = {
    pid: child.pid,
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
  return { process: started, port: await untilReady(child, entryPoint) }
}

/** Reads the log until the process says that it is ready; resolves with the port it listens on, if it does. */
function untilReady(child: ChildProcess, entryPoint: EntryPoint): Promise<number | undefined> {
  const needed = new Set<string>([READY[entryPoint], ...(entryPoint === 'main.ts' ? ['API listens'] : [])])
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
