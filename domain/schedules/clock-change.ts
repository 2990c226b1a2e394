import { Prisma } from '../../prisma/generated/client.ts'

/** Changes of the columns that follow a change of cron_expression, timezone or enabled. `syncClock` has to be called. */
export const CLOCK_CHANGE = Prisma.sql`
  revision = revision + 1, clock_due_at = clock_timestamp(), launched_until = clock_timestamp(),
  next_times = '{}', next_times_since = NULL`

/** Reason of a schedule that a request has disabled. */
export const PAUSED = 'paused by the API'
