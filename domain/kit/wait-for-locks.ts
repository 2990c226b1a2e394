import { Prisma } from '../../prisma/generated/client.ts'
import { tooMany } from './errors.ts'

/** Postgres's code of lock_not_available. */
const LOCKED = '55P03'

/** Times that a change waits for a second for somebody else's. */
const MAX_WAITS = 20

/**
 * Makes a change of a session's data, again and again while others hold its locks: SQL functions wait for a second, so
 * that nobody waits long for what they have locked themselves. `what` names the data. Throws `too_many` when that takes
 * too long.
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

/** Returns Postgres's code of an error by the driver or by Prisma, which keeps the driver's error in `meta`. */
function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined
  if (!(error instanceof Prisma.PrismaClientKnownRequestError)) return 'code' in error ? error.code : undefined
  const failure = error.meta?.driverAdapterError as { cause?: { originalCode?: unknown } } | undefined
  return failure?.cause?.originalCode
}
