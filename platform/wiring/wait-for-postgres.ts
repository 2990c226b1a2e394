import type { Logger } from 'pino'
import { sleep } from '../../lib/sleep.ts'
import { toConfigError } from '../postgres/start-failure.ts'
import { unavailability } from '../unavailable.ts'

const RETRY_MS = 1000

/**
 * Repeats a part of the start, which must be repeatable, until Postgres answers; any other error is thrown,
 * as a ConfigError when the settings are wrong. The log has
 * one line when the wait begins and one when it is over. Rejects with the signal's reason when `signal` aborts.
 */
export async function waitForPostgres<T>(work: () => Promise<T>, log: Logger, signal: AbortSignal): Promise<T> {
  for (let isWaiting = false; ; isWaiting = true) {
    signal.throwIfAborted()
    try {
      const result = await work()
      if (isWaiting) log.info('Postgres answers now')
      return result
    } catch (error) {
      const wrong = toConfigError(error, 'DATABASE_URL')
      if (wrong !== undefined || !mayPass(error)) throw wrong ?? error
      // An error of several addresses has only a code.
      const { message, code } = error as NodeJS.ErrnoException
      const err = (message || String(code)).slice(0, 300)
      if (!isWaiting) log.warn({ err }, 'Postgres does not answer; the start waits for it')
      await sleep(RETRY_MS, signal)
    }
  }
}

/** Tells whether a retry may succeed. Another process may also hold a lock for long. */
const mayPass = (error: unknown): boolean =>
  unavailability(error) !== undefined || /timeout/i.test((error as Error).message)
