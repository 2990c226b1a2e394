import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statfs } from 'node:fs/promises'
import { promisify } from 'node:util'

/** File system in memory with a size of its own, which a test can take away. */
export type Disk = {
  /** False where this process may not mount: then nothing happens to it. */
  canFill: boolean
  /** Leaves no room: what is written may not grow. */
  fill(): Promise<void>
  /** Gives the room back. */
  empty(): Promise<void>
  remove(): Promise<void>
}

const MAX_TRIES = 50
const SIZE_BYTES = 4 * 2 ** 30
const run = promisify(execFile)
const NONE: Disk = { canFill: false, fill: async () => {}, empty: async () => {}, remove: async () => {} }

/** Makes a folder a disk of its own. Without the right to mount, as outside a container, it cannot be filled. */
export async function mountDisk(folder: string): Promise<Disk> {
  const mount = (options: string) => run('mount', ['-t', 'tmpfs', '-o', options, 'proof', folder])
  try {
    await mount(`size=${SIZE_BYTES},mode=755`)
  } catch {
    return NONE
  }
  // Unmounts when this process has ended, however that was.
  const guard = spawn('/bin/sh', ['-c', 'read _; umount -l "$1"', 'guard', folder], {
    ...{ detached: true, cwd: '/', stdio: ['pipe', 'ignore', 'ignore'] },
  })
  const resize = async (bytes: number): Promise<void> => {
    await mount(`remount,size=${bytes}`)
  }
  return {
    canFill: true,
    fill: async () => {
      for (let tries = 1; ; tries++) {
        const { blocks, bfree, bsize } = await statfs(folder)
        try {
          return await resize((blocks - bfree) * bsize)
        } catch (error) {
          // More was written meanwhile.
          if (tries === MAX_TRIES) throw error
        }
      }
    },
    empty: () => resize(SIZE_BYTES),
    remove: async () => {
      guard.stdin.end()
      await once(guard, 'exit')
    },
  }
}
