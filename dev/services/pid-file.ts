import { readFile, rm, writeFile } from 'node:fs/promises'
import { sleep } from '../../lib/sleep.ts'
import { runCommand } from './command.ts'

/** Identity of a process. Numbers are reused, so the start time distinguishes two processes with the same number. */
type ProcessIdentity = {
  pid: number
  startedAt: string
  commandLine: string
}

const PS_TIMEOUT_MS = 5000
const POLL_INTERVAL_MS = 25

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

async function readLinuxIdentity(pid: number): Promise<ProcessIdentity> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The second field is the program's name and may hold blanks; the start time is field 22.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields[0] === 'Z') throw new Error('the process has ended')
  const commandLine = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim()
  return { pid, startedAt: fields[19] ?? '', commandLine }
}

async function readPsIdentity(pid: number): Promise<ProcessIdentity> {
  const ask = (field: string) => runCommand('ps', ['-o', `${field}=`, '-p', String(pid)], { timeoutMs: PS_TIMEOUT_MS })
  const [startedAt, commandLine] = await Promise.all([ask('lstart'), ask('command')])
  return { pid, startedAt: startedAt.output, commandLine: commandLine.output }
}

async function readIdentity(pid: number): Promise<ProcessIdentity | undefined> {
  if (!isAlive(pid)) return undefined
  if (process.platform !== 'linux') return readPsIdentity(pid)
  return readLinuxIdentity(pid).catch(() => undefined)
}

export async function writePidFile(file: string, pid: number): Promise<void> {
  const identity = await readIdentity(pid)
  await writeFile(file, `${pid}\n${identity?.startedAt ?? ''}\n`)
}

/** Returns the number of the process recorded in the file, if it still runs and is the expected program. */
export async function findRecordedProcess(file: string, program: string): Promise<number | undefined> {
  const [pidLine = '', startedAt = ''] = (await readFile(file, 'utf8').catch(() => '')).split('\n')
  const pid = Number.parseInt(pidLine, 10)
  if (!Number.isInteger(pid) || pid < 2) return undefined
  const identity = await readIdentity(pid)
  const isSame = identity?.startedAt === startedAt && identity.commandLine.includes(program)
  return isSame ? pid : undefined
}

export async function waitUntilGone(pid: number, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs
  while (Date.now() < deadline) {
    if ((await readIdentity(pid)) === undefined) return true
    await sleep(POLL_INTERVAL_MS)
  }
  return false
}

/** Stops the recorded process that an earlier run left behind when it was killed. Returns true if there was one. */
export async function stopRecordedProcess(file: string, program: string, signal: NodeJS.Signals): Promise<boolean> {
  const pid = await findRecordedProcess(file, program)
  if (pid !== undefined) {
    process.kill(pid, signal)
    if (!(await waitUntilGone(pid, 10_000))) {
      process.kill(pid, 'SIGKILL')
      await waitUntilGone(pid, 5000)
    }
  }
  await rm(file, { force: true })
  return pid !== undefined
}
