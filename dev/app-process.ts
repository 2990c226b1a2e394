import { spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { sleep } from '../lib/sleep.ts'
import { APP_PID_FILE, ROOT } from './development.ts'
import { writePidFile } from './services/pid-file.ts'
import { guardAgainstLeak, settlesWithin } from './services/process.ts'
import { print } from './terminal.ts'

const STOP_TIMEOUT_MS = 15_000
const READY_TIMEOUT_MS = 60_000
const PROBE_TIMEOUT_MS = 3000
const POLL_INTERVAL_MS = 100

export type AppProcess = {
  exited: Promise<string>
  /** Sends SIGTERM, and SIGKILL if the app has not ended in time. */
  stop(): Promise<void>
  kill(): void
}

export async function startApp(env: Record<string, string>): Promise<AppProcess> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', 'main.ts'], {
    cwd: ROOT,
    // A line for each request would hide what the launcher says.
    env: { LOG_LEVEL: 'warn', ...process.env, ...env },
    // Ctrl-C must reach only the launcher, which stops the app before the services that it needs.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : signal))
  })
  if (child.pid === undefined) throw new Error(`The app could not be started: ${await exited}`)
  const guard = guardAgainstLeak(child.pid, 'SIGTERM')
  void exited.then(() => guard.release())
  await writePidFile(APP_PID_FILE, child.pid)

  const stop = async () => {
    child.kill('SIGTERM')
    if (!(await settlesWithin(exited, STOP_TIMEOUT_MS))) {
      print(`The app did not stop within ${STOP_TIMEOUT_MS / 1000} s; killing it.`)
      child.kill('SIGKILL')
      await exited
    }
    await rm(APP_PID_FILE, { force: true })
  }
  return { exited, stop, kill: () => void child.kill('SIGKILL') }
}

async function isReady(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }).catch(() => undefined)
  const body: unknown = await response?.json().catch(() => undefined)
  return typeof body === 'object' && body !== null && 'status' in body && body.status === 'ready'
}

export async function waitUntilReady(url: string, cancelled: AbortSignal): Promise<'ready' | 'late'> {
  const deadline = Date.now() + READY_TIMEOUT_MS
  while (Date.now() < deadline && !cancelled.aborted) {
    if (await isReady(url)) return 'ready'
    await sleep(POLL_INTERVAL_MS)
  }
  return 'late'
}
