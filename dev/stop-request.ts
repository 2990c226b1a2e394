import { print, printError } from './terminal.ts'

/** Time within which two signals count as one request: terminals and npm may both deliver one Ctrl-C. */
const SAME_REQUEST_MS = 1000

export type StopRequest = {
  /** Resolves at the first SIGINT, SIGTERM or SIGHUP. */
  received: Promise<'stop'>
  /** Resolves at the second signal, which asks to stop without waiting. */
  forced: Promise<void>
}

/** Listens for the signals that ask a launcher to stop. A third request ends it on the spot. */
export function listenForStop(): StopRequest {
  const first = Promise.withResolvers<'stop'>()
  const second = Promise.withResolvers<void>()
  const steps = [
    () => {
      print('\nStopping; press Ctrl-C again to stop at once.')
      first.resolve('stop')
    },
    () => second.resolve(),
    // The guards of the child processes stop what still runs.
    () => process.exit(130),
  ]
  let lastAt = 0
  const onSignal = () => {
    if (Date.now() - lastAt < SAME_REQUEST_MS) return
    lastAt = Date.now()
    steps.shift()?.()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
  return { received: first.promise, forced: second.promise }
}

/** Runs a launcher, and turns what it throws into one sentence on the terminal. */
export async function runLauncher(launch: () => Promise<number>): Promise<never> {
  const exitCode = await launch().catch((error) => {
    printError(`\n${error instanceof Error ? error.message : String(error)}`)
    return 1
  })
  process.exit(exitCode)
}
