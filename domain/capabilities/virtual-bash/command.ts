import type { FileChange } from '../../files/file-change.ts'

/** What a bash process is told, and what it says. */

/** Most bytes that a command may write. */
export const MAX_WRITTEN_BYTES = 64 * 1024 * 1024

export type Command = {
  command: string
  timeoutMs: number
  maxFileBytes: number
  /** JSON of all files and directories, which only the process has to read. */
  tree: string
}

/** Question for a content of the session. */
export type Question = { number: number; path: string; contentId: string }
export type Reply = { number: number; bytes: Uint8Array }

export type Output = {
  /** The beginning. */
  text: string
  /** Bytes after it. */
  omittedBytes: number
}

/** `broken_off`: the shell itself failed, as when a redirection could not be written. */
export type CommandResult =
  | { outcome: 'exited'; exitCode: number; stdout: Output; stderr: Output; changes: FileChange[] }
  | { outcome: 'late' }
  | { outcome: 'broken_off'; reason: string }
