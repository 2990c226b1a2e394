import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, open, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { sleep } from '../../lib/sleep.ts'
import { type Log, lastLines } from './command.ts'
import { stopRecordedProcess, writePidFile } from './pid-file.ts'

export type ServiceOptions = {
  /**
   * Folder of the service's data, log and pid file. A service that starts again with the same folder finds its data.
   */
  dataDir: string
  port: number
  log: Log
}

export type Service = {
  url: string
  pid: number
  logPath: string
  /** Resolves with a sentence once the process has ended, for whatever reason. */
  exited: Promise<string>
  /** Stops the process gracefully, and with SIGKILL after a time limit. */
  stop(): Promise<void>
  /** Ends the process with SIGKILL. */
  kill(): Promise<void>
}

export type ServiceSpecification = {
  name: string
  command: string
  args: string[]
  dataDir: string
  url: string
  stopSignal: NodeJS.Signals
  log: Log
  env?: NodeJS.ProcessEnv
  user?: { uid: number; gid: number }
  /** Tries once to use the service; throws while it is not ready. */
  probe(): Promise<void>
}

const READY_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 10_000
const POLL_INTERVAL_MS = 50

/**
 * Script of the guard. Waits for its standard input to close, which the death of its parent causes too, even by
 * SIGKILL, and then stops the process.
 */
const GUARD_SCRIPT = `
trap '' INT TERM HUP
while read -r _; do :; done
kill -s "$2" "$1" 2>/dev/null || exit 0
for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -0 "$1" 2>/dev/null || exit 0; done
kill -s KILL -- "-$1"`

/** Stops a process when this one ends without having stopped it. `release` ends the guard itself. */
export function guardAgainstLeak(pid: number, signal: NodeJS.Signals): { release(): void } {
  const name = signal.replace('SIG', '')
  const guard = spawn('/bin/sh', ['-c', GUARD_SCRIPT, 'guard', String(pid), name], {
    detached: true,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guard.on('error', () => {})
  guard.stdin.on('error', () => {})
  guard.unref()
  if ('unref' in guard.stdin && typeof guard.stdin.unref === 'function') guard.stdin.unref()
  return { release: () => void guard.kill('SIGKILL') }
}

function whenExited(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : signal))
  })
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // The process has already ended.
  }
}

/**
 * Resolves with true if the promise fulfills in time, with false if it is late; rejects if it rejects in time. Once the
 * promise has fulfilled, its timer does not keep the process alive.
 */
export async function settlesWithin(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const limit = new AbortController()
  const timeout = sleep(timeoutMs, limit.signal).then(() => false)
  const settled = await Promise.race([promise.then(() => true), timeout])
  limit.abort()
  return settled
}

async function waitUntilReady(specification: ServiceSpecification, exited: Promise<string>): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS
  let ended: string | undefined
  exited.then((reason) => {
    ended = reason
  })
  for (;;) {
    try {
      await specification.probe()
      // If the process has ended, the answer came from another process on this port.
      if (ended === undefined) return
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`it was not ready after ${READY_TIMEOUT_MS / 1000} s (${error})`)
    }
    if (ended !== undefined) throw new Error(`it ended while starting (${ended})`)
    await sleep(POLL_INTERVAL_MS)
  }
}

async function spawnWithLog(specification: ServiceSpecification, logPath: string): Promise<ChildProcess> {
  const logFile = await open(logPath, 'w')
  try {
    return spawn(specification.command, specification.args, {
      // A process group of its own: Ctrl-C in the terminal must reach only the launcher, which stops things in order.
      detached: true,
      cwd: specification.dataDir,
      env: { ...process.env, ...specification.env },
      stdio: ['ignore', logFile.fd, logFile.fd],
      ...specification.user,
    })
  } finally {
    await logFile.close()
  }
}

export async function startProcess(specification: ServiceSpecification): Promise<Service> {
  const { name, dataDir, stopSignal, url, log } = specification
  const logPath = path.join(dataDir, `${name}.log`)
  const pidFile = path.join(dataDir, `${name}.pid`)
  await mkdir(dataDir, { recursive: true })
  if (await stopRecordedProcess(pidFile, name, stopSignal)) log(`stopped the ${name} an earlier run had left behind`)

  const child = await spawnWithLog(specification, logPath)
  const exited = whenExited(child)
  const pid = child.pid
  if (pid === undefined) throw new Error(`${name} could not be started: ${await exited}`)
  const guard = guardAgainstLeak(pid, stopSignal)
  const cleanedUp = exited.then(async () => {
    guard.release()
    await rm(pidFile, { force: true })
  })
  const kill = async () => {
    signalGroup(pid, 'SIGKILL')
    await cleanedUp
  }
  const stop = async () => {
    child.kill(stopSignal)
    if (!(await settlesWithin(cleanedUp, STOP_TIMEOUT_MS))) await kill()
  }
  try {
    await writePidFile(pidFile, pid)
    await waitUntilReady(specification, exited)
  } catch (error) {
    await kill()
    const reason = error instanceof Error ? error.message : String(error)
    const tail = lastLines(await readFile(logPath, 'utf8').catch(() => ''), 15)
    throw new Error(`${name} could not be started: ${reason}. Its log ${logPath} ends with:\n${tail}`)
  }
  return { url, pid, logPath, exited, stop, kill }
}
