import { Prisma } from '../../prisma/generated/client.ts'
import { tooMany } from './errors.ts'

/** Postgres's code of lock_not_available. */
const LOCKED = '55P03'
/** Postgres's code of foreign_key_violation. */
const FOREIGN_KEY = '23503'

/** Maximum number of waits, of a second each, for other changes. */
const MAX_WAITS = 20

/**
 * Makes a change of a session's data, and repeats it while others hold its locks. SQL functions wait only a second, so
 * that nobody waits long for the locks that they hold meanwhile. `what` names the data. Throws `too_many` after
 * MAX_WAITS.
 */
export async function waitForLocks<T>(change: () => Promise<T>, what: string, signal?: AbortSignal): Promise<T> {
  for (let waits = 0; waits < MAX_WAITS; waits++) {
    signal?.throwIfAborted()
    try {
      return await change()
    } catch (error) {
      if (codeOf(error) !== LOCKED) throw error
    }
  }
  throw tooMany(`${what} being changed by others; try again`, 2)
}

/** Whether a write failed because a row that it refers to is gone: its user, organization or session was deleted meanwhile. */
export const refersToNothing = (error: unknown): boolean => codeOf(error) === FOREIGN_KEY

/** Returns Postgres's code of an error by the driver or by Prisma, which keeps the driver's error in `meta`. */
function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined
  if (!(error instanceof Prisma.PrismaClientKnownRequestError)) return 'code' in error ? error.code : undefined
  const failure = error.meta?.driverAdapterError as { cause?: { originalCode?: unknown } } | undefined
  return failure?.cause?.originalCode
}
