import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'

/**
 * Names identify the process that made a folder. Another process may have had the same id before, as in a container.
 */
const PREFIX = `session-databases-${hostname()}-`
const startedAt = Math.floor(performance.timeOrigin)

/** Creates an empty folder for copies, and removes the folders of dead processes of this machine. */
export async function makeFolder(): Promise<string> {
  const names = await readdir(tmpdir())
  const leftOver = names.filter((name) => name.startsWith(PREFIX) && isLeftOver(name.slice(PREFIX.length)))
  await Promise.all(leftOver.map((name) => removeFolder(join(tmpdir(), name))))
  return mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-${startedAt}-`))
}

/** Removes a folder. If that fails, it is left for the next process. */
export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => {})
}

function isLeftOver(maker: string): boolean {
  // With further parts, the folder is of another host whose name begins like this one's.
  const [, id = 0, madeAt = 0] = /^(\d+)-(\d+)-[^-]+$/.exec(maker)?.map(Number) ?? []
  if (id === 0) return false
  return id === process.pid ? madeAt !== startedAt : !isRunning(id)
}

function isRunning(id: number): boolean {
  try {
    process.kill(id, 0)
    return true
  } catch (error) {
    // Another user's process is running, too.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
