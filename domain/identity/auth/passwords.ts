import { hash, verify } from '@node-rs/argon2'
import { createFairQueue } from '../../../lib/fair-queue.ts'
import { tooMany } from '../../kit/errors.ts'

/** OWASP's minimum for argon2id, the library's default algorithm: 19 MiB, two passes. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
/**
 * Number of hashes computed at once. Each takes a core for tens of milliseconds, in threads that also verify tokens.
 */
const AT_ONCE = 2
const MAX_WAITING = 100
const BUSY_SECONDS = 5

const queue = createFairQueue(AT_ONCE, Number.POSITIVE_INFINITY, { maxWaiting: MAX_WAITING })

const run = <T>(work: () => Promise<T>): Promise<T> =>
  queue.run({}, work, () => {
    throw tooMany('Too many people are signing in; try again', BUSY_SECONDS)
  })

/** Hashes a password. Throws `too_many` when too many hashes are waiting, as verifyPassword does. */
export const hashPassword = async (password: string): Promise<string> => run(() => hash(password, COST))

/** Verifies a password. Without a hash it returns false, after the same time as with one. */
export async function verifyPassword(passwordHash: string | null | undefined, password: string): Promise<boolean> {
  const isRight = await run(async () => verify(passwordHash ?? (await nobodysHash()), password))
  return isRight && typeof passwordHash === 'string'
}

let nobodys: Promise<string> | undefined
function nobodysHash(): Promise<string> {
  nobodys ??= hash('nobody', COST)
  return nobodys
}
/** Prepares the hash used for unknown users. Otherwise the response time would reveal the first one. */
export const preparePasswords = async (): Promise<void> => {
  await nobodysHash()
}
