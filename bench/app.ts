import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { RunningServices } from '../dev/services/index.ts'
import { guardAgainstLeak } from '../dev/services/process.ts'

export type RunningApp = { pid: number; stop(): Promise<void> }

/** Checkout of the service, and the program to run of it. */
type Program = { folder?: string; entryPoint?: 'main.ts' | 'api/main.ts' | 'worker/main.ts' }

export const ROOT = fileURLToPath(new URL('..', import.meta.url))
const READY_MS = 60_000
/** Time for the service to end by itself. */
const STOP_MS = 30_000

/** Starts the service as `npm start` does, API and worker in one process, or one of the two. A worker may not be ready. */
export async function spawnApp(
  services: RunningServices,
  port: number,
  environment: Record<string, string> = {},
  { folder = ROOT, entryPoint = 'main.ts' }: Program = {},
): Promise<RunningApp> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', entryPoint], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      DATABASE_URL: services.databaseUrl,
      REDIS_URL: services.redisUrl,
      TEMPORAL_ADDRESS: services.temporalAddress,
      PORT: `${port}`,
      LOG_LEVEL: 'warn',
      ...environment,
    },
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  if (child.pid === undefined) throw new Error(`${entryPoint} could not be started`)
  const guard = guardAgainstLeak(child.pid, 'SIGKILL')
  void exited.then(() => guard.release())
  if (entryPoint !== 'worker/main.ts') {
    await ready(child, port).catch((error) => {
      child.kill('SIGKILL')
      throw error
    })
  }
  const stop = async () => {
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await exited
    clearTimeout(late)
  }
  return { pid: child.pid, stop }
}

async function ready(child: ChildProcess, port: number): Promise<void> {
  const until = Date.now() + READY_MS
  while (Date.now() < until) {
    if (child.exitCode !== null) throw new Error(`the service ended with code ${child.exitCode}`)
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined)
    // Earlier versions had no other state in an answer that is ok.
    if (answer?.ok && ((await answer.json()) as { status: string }).status !== 'degraded') return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error(`the service was not ready within ${READY_MS} ms`)
}
