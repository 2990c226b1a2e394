import type { FileChange } from '../../../session-data/files/file-change.ts'

/** Messages to and from a bash process. */

/** Maximum bytes that a command may write. */
export const MAX_WRITTEN_BYTES = 64 * 1024 * 1024

export type Command = {
  command: string
  timeoutMs: number
  maxFileBytes: number
  /** JSON of all files and directories, parsed only by the process. */
  tree: string
  /** How far the script's clock begins before real time, so that it is right once the script has slept. */
  earlierMs: number
}

/** Request for a file content of the session. */
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

/** First message of a process: it has loaded its program. */
export type Ready = { is: 'ready' }
/** Last message about a command. */
export type Answer = {
  result: CommandResult
  /** Time that the script skipped by sleeping, still to be waited for. */
  sleptMs: number
  /** Whether the process may run another command of the organization. */
  isReusable: boolean
}
