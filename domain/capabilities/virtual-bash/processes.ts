import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Claim, createSlots } from '../../../lib/threads/slots.ts'
import type { Command, CommandResult, Question, Reply } from './command.ts'

/** `busy`: the command was not begun. */
export type Ran = CommandResult | { outcome: 'out_of_memory' | 'busy' }

/** Processes that run bash, each one command. */
export type BashProcesses = {
  /**
   * Runs a command. `read` returns contents that it asks for. Rejects with the error of `read`, and with the signal's
   * reason when `signal` aborts.
   */
  run(command: Command, read: Read, claim: Claim, signal: AbortSignal): Promise<Ran>
}
type Read = (question: Question) => Promise<Uint8Array>

/** Commands at once, on however many cores: each can take 1 GB of memory. */
const MAX_PROCESSES = 2
/** Time that a command may wait for its turn. */
export const WAIT_MS = 20_000
/** Time for a process to start, and to stop by itself at its time limit. */
const GRACE_MS = 3000

/** Exit code of a process that could not allocate memory; the kernel kills it when the machine has none left. */
const ABORTED = 134

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
/** What a process may read of the machine. Nothing may be written, and no other program be started. */
const READABLE = ['contract', 'domain', 'lib', 'node_modules', 'package.json'].map((name) => at(`../../../${name}`))
const EXEC_ARGV = [
  '--max-old-space-size=512',
  '--permission',
  '--no-experimental-sqlite',
  '--disallow-code-generation-from-strings',
  ...READABLE.map((path) => `--allow-fs-read=${path}`),
  '--disable-warning=ExperimentalWarning',
]

export function createBashProcesses(): BashProcesses {
  const slots = createSlots(MAX_PROCESSES, WAIT_MS)
  return {
    run: async (command, read, claim, signal) => {
      if (!(await slots.enter(claim, signal))) return { outcome: 'busy' }
      try {
        return await runProcess(command, read, signal)
      } finally {
        slots.leave(claim)
      }
    },
  }
}

/** Runs a command in a process of its own, which is killed afterwards. */
async function runProcess(command: Command, read: Read, signal: AbortSignal): Promise<Ran> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<Ran>()
  const child = fork(at('./program.ts'), { env: {}, execArgv: EXEC_ARGV, serialization: 'advanced', stdio: 'ignore' })
  // What cannot be sent is for a process that has ended, and that is noticed.
  const send = (message: Command | Reply) => child.send(message, () => {})
  const stop = () => reject(signal.reason)
  const timer = setTimeout(() => resolve({ outcome: 'late' }), command.timeoutMs + GRACE_MS)
  signal.addEventListener('abort', stop)
  child.on('error', reject).on('exit', (code, killer) => {
    if (code === ABORTED || killer === 'SIGABRT' || killer === 'SIGKILL') resolve({ outcome: 'out_of_memory' })
    else reject(new Error(`A bash process ended early: ${killer ?? code}.`))
  })
  child.on('message', (message: Question | CommandResult) => {
    if ('outcome' in message) resolve(message)
    else read(message).then((bytes) => send({ number: message.number, bytes }), reject)
  })
  try {
    send(command)
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    child.kill('SIGKILL')
  }
}
