import { hash, verify } from '@node-rs/argon2'
import pLimit from 'p-limit'
import { tooMany } from '../errors.ts'

/** What OWASP asks for at least: 19 MiB, two passes. The library's own default, argon2id, is the kind. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
/** Hashing takes a core for tens of milliseconds, and the threads that it runs in also check tokens. */
const AT_ONCE = 2
const MAX_WAITING = 100
const BUSY_SECONDS = 5

const limit = pLimit(AT_ONCE)

function run<T>(work: () => Promise<T>): Promise<T> {
  if (limit.pendingCount >= MAX_WAITING) throw tooMany('Too many people are signing in; try again', BUSY_SECONDS)
  return limit(work)
}

/** Throws `too_many`, as verifyPassword does. */
export const hashPassword = async (password: string): Promise<string> => run(() => hash(password, COST))

/** Without a hash it takes as long as with one, and is false. */
export async function verifyPassword(passwordHash: string | null | undefined, password: string): Promise<boolean> {
  const isRight = await run(async () => verify(passwordHash ?? (await nobodysHash()), password))
  return isRight && typeof passwordHash === 'string'
}

let nobodys: Promise<string> | undefined
function nobodysHash(): Promise<string> {
  nobodys ??= hash('nobody', COST)
  return nobodys
}
/** Made before it is needed, or the first one who is not known would be told apart by the time it takes. */
export const preparePasswords = async (): Promise<void> => {
  await nobodysHash()
}
