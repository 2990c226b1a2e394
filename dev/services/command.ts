import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import path from 'node:path'

export type Log = (line: string) => void

export type CommandResult = {
  succeeded: boolean
  /** The last lines of stdout and stderr together. */
  output: string
}

type CommandOptions = {
  cwd?: string
  user?: { uid: number; gid: number }
  timeoutMs: number
  /** Called every ten seconds, to show that a long installation is still running. */
  onProgress?: (elapsedSeconds: number) => void
}

const PROGRESS_INTERVAL_MS = 10_000
const OUTPUT_LIMIT_CHARACTERS = 4000

export async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}

export async function findExecutable(name: string, folders: string[]): Promise<string | undefined> {
  for (const folder of folders) {
    const file = path.join(folder, name)
    if (folder !== '' && (await isExecutable(file))) return file
  }
  return undefined
}

export function findOnPath(name: string): Promise<string | undefined> {
  return findExecutable(name, (process.env.PATH ?? '').split(path.delimiter))
}

/** Runs a command to its end, or to the time limit. Never throws: a missing program is a failed command. */
export function runCommand(command: string, args: string[], options: CommandOptions): Promise<CommandResult> {
  return new Promise((resolve) => {
    const startedAt = Date.now()
    let output = ''
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-OUTPUT_LIMIT_CHARACTERS)
    }
    const child = spawn(command, args, { cwd: options.cwd, stdio: ['ignore', 'pipe', 'pipe'], ...options.user })
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    const progress = setInterval(() => {
      options.onProgress?.(Math.round((Date.now() - startedAt) / 1000))
    }, PROGRESS_INTERVAL_MS)
    const limit = setTimeout(() => {
      output += `\nstopped after ${options.timeoutMs / 1000} s`
      child.kill('SIGKILL')
    }, options.timeoutMs)
    const finish = (succeeded: boolean) => {
      clearInterval(progress)
      clearTimeout(limit)
      // A grandchild may still hold the pipes open.
      child.stdout.destroy()
      child.stderr.destroy()
      resolve({ succeeded, output: output.trim() })
    }
    child.on('error', (error) => {
      output += error.message
      finish(false)
    })
    child.on('exit', (code) => setImmediate(finish, code === 0))
  })
}

export function lastLines(text: string, count: number): string {
  return text.trim().split('\n').slice(-count).join('\n')
}
