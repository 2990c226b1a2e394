import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { RunningServices } from '../dev/services/index.ts'

export type RunningApp = { stop(): Promise<void> }

const READY_MS = 60_000

/** Starts the service as `npm start` does: API and worker in one process. */
export async function spawnApp(
  services: RunningServices,
  port: number,
  environment: Record<string, string> = {},
): Promise<RunningApp> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', 'main.ts'], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
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
  await ready(child, port).catch((error) => {
    child.kill('SIGKILL')
    throw error
  })
  return {
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.kill('SIGTERM')
      }),
  }
}

async function ready(child: ChildProcess, port: number): Promise<void> {
  const until = Date.now() + READY_MS
  while (Date.now() < until) {
    if (child.exitCode !== null) throw new Error(`the service ended with code ${child.exitCode}`)
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined)
    if (answer?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error(`the service was not ready within ${READY_MS} ms`)
}
