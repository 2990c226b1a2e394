import { createFairQueue } from '../../lib/fair-queue.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from './actor.ts'
import type { Deps } from './deps.ts'
import { DomainError, tooMany } from './errors.ts'

/** Reads of a process at once; each holds a connection. */
const AT_ONCE = 4
const WAIT_MS = 5000
const STATEMENT_MS = 5000
/** Several statements. */
const TRANSACTION_MS = 4 * STATEMENT_MS
const QUERY_CANCELED = '57014'

const queue = createFairQueue(AT_ONCE, WAIT_MS, { maxWaiting: 100, maxWaitingOfOwner: 50 })

/**
 * Reads by filters that few or many rows may match: a few reads at once, each statement within 5 s, and by indexes even
 * where Postgres expects to read most of a table, as it knows nothing of one organization's part. Each statement is
 * planned for its values: a plan for any word takes a common one for rare. Throws `unprocessable` when the time is over,
 * `too_many` when no slot becomes free.
 */
export async function readFiltered<T>(
  deps: Deps,
  { organizationId }: Actor,
  read: (db: Prisma.TransactionClient) => Promise<T>,
): Promise<T> {
  const owner = await deps.owners.ownerOf(organizationId)
  const work = () =>
    deps.db.$transaction(
      async (db) => {
        await db.$queryRaw`
          SELECT set_config('statement_timeout', ${`${STATEMENT_MS}`}, true), set_config('enable_seqscan', 'off', true),
            set_config('plan_cache_mode', 'force_custom_plan', true)`
        return read(db)
      },
      { timeout: TRANSACTION_MS },
    )
  try {
    return await queue.run({ owner }, work, () => {
      throw tooMany('Too many lists are being filtered; try again', 2)
    })
  } catch (error) {
    throw isTimeout(error) ? tooBroad() : error
  }
}

const tooBroad = () =>
  new DomainError('unprocessable', 'The filters take too long; narrow them, for example by from and to')

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && JSON.stringify({ ...error, text: error.message }).includes(QUERY_CANCELED)
