import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Child process that answers each message with one message; its first message says that it is ready. */
export type Child = { pid: number; ask<Answer>(question: unknown): Promise<Answer>; stop(): Promise<void> }

/** Time for a child process to end by itself. */
const STOP_MS = 30_000

export type ChildOptions = { args?: string[]; execArgv?: string[]; env?: Record<string, string> }

/** Starts a child process; `file` is relative to bench/. It must end on the message 'stop'. */
export async function startChild(file: string, options: ChildOptions = {}): Promise<Child> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), options.args, {
    execArgv: ['--disable-warning=ExperimentalWarning', ...(options.execArgv ?? [])],
    env: { ...process.env, ...options.env },
  })
  await nextMessage(child)
  return {
    pid: child.pid ?? 0,
    ask: async <Answer>(question: unknown) => {
      const answer = nextMessage(child)
      child.send(question as object)
      // Both ends belong to the bench.
      return (await answer) as Answer
    },
    stop: () =>
      new Promise((resolve) => {
        const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
        child.once('exit', () => {
          clearTimeout(late)
          resolve()
        })
        child.send('stop')
      }),
  }
}

const nextMessage = (child: ChildProcess): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const end = (code: number | null) => reject(new Error(`a process of the bench ended with code ${code}`))
    child.once('exit', end)
    child.once('message', (message) => {
      child.off('exit', end)
      resolve(message)
    })
  })

/** Answers the parent's messages until it sends 'stop'. */
export function serveParent(
  ready: unknown,
  answer: (question: unknown) => Promise<unknown>,
  stop: () => Promise<void>,
) {
  process.on('message', async (question) => {
    if (question !== 'stop') return void process.send?.(await answer(question))
    await stop()
    process.exit(0)
  })
  process.on('disconnect', () => process.exit(1))
  process.send?.(ready)
}
