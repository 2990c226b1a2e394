import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Answer, Command, CommandResult, Question, Ready, Reply } from './command.ts'

/** Outcome of a command. `sleptMs` is the time that its script skipped by sleeping, still to be waited for. */
export type Ended = { ran: CommandResult | { outcome: 'out_of_memory' }; sleptMs: number; isReusable: boolean }

/** Time that a process has to stop by itself at the command's time limit. */
const GRACE_MS = 3000

/** Exit code of a process that could not allocate memory; the kernel kills it if the machine runs out of memory. */
const ABORTED = 134

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
/** Paths that a process may read. It can neither write to the machine nor start other programs. */
const READABLE = ['contract', 'domain', 'lib', 'node_modules', 'package.json'].map((name) => at(`../../../../${name}`))
const EXEC_ARGV = [
  '--max-old-space-size=512',
  '--permission',
  '--no-experimental-sqlite',
  '--disallow-code-generation-from-strings',
  ...READABLE.map((path) => `--allow-fs-read=${path}`),
  '--disable-warning=ExperimentalWarning',
]

export function startChild(): ChildProcess {
  const child = fork(at('./program.ts'), { env: {}, execArgv: EXEC_ARGV, serialization: 'advanced', stdio: 'ignore' })
  // Errors of an idle process do not matter, but without a listener they would end the service.
  return child.on('error', () => {})
}

/** Runs a command in a process, which is killed unless it can run another one afterwards. */
export async function runIn(
  child: ChildProcess,
  command: Command,
  read: (question: Question) => Promise<Uint8Array>,
  signal: AbortSignal,
): Promise<Ended> {
  const { promise, resolve, reject } = Promise.withResolvers<Ended>()
  let timer: NodeJS.Timeout | undefined
  // Sending fails only if the process has ended, which is noticed elsewhere.
  const send = (message: Command | Reply) => child.send(message, () => {})
  const end = (ran: Ended['ran']) => resolve({ ran, sleptMs: 0, isReusable: false })
  // The start of a process does not count.
  const begin = () => {
    timer = setTimeout(() => end({ outcome: 'late' }), command.timeoutMs + GRACE_MS)
    send(command)
  }
  const stop = () => reject(signal.reason)
  const onExit = (code: number | null, killer: NodeJS.Signals | null) => {
    if (code === ABORTED || killer === 'SIGABRT' || killer === 'SIGKILL') end({ outcome: 'out_of_memory' })
    else reject(new Error(`A bash process ended early: ${killer ?? code}.`))
  }
  const onMessage = (message: Question | Answer | Ready) => {
    if ('is' in message) begin()
    else if ('result' in message) resolve({ ran: message.result, ...message })
    else read(message).then((bytes) => send({ number: message.number, bytes }), reject)
  }
  const listeners = { error: reject, exit: onExit, message: onMessage }
  for (const [event, listener] of Object.entries(listeners)) child.on(event, listener)
  signal.addEventListener('abort', stop)
  let isReusable = false
  try {
    signal.throwIfAborted()
    if (isReady.has(child)) begin()
    const ended = await promise
    isReady.add(child)
    isReusable = ended.isReusable
    return ended
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    for (const [event, listener] of Object.entries(listeners)) child.off(event, listener)
    if (!isReusable) child.kill('SIGKILL')
  }
}

/** Processes that have run a command. They do not report again that they are ready. */
const isReady = new WeakSet<ChildProcess>()
