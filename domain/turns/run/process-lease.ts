import { hasEnded } from '../../../lib/process-place.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { POLLS_MS } from './abandoned-turns.ts'

/** Time for which a process counts as living after it was last seen. */
export const LEASE_MS = 3000
/** Time in which a stopping process ends its work, or gives it back to Temporal. */
const STOPS_MS = 10_000
/** Time for which a dead process is left to the process that has taken it, which may die, too. */
const TAKEN_MS = 2500
/** Interval at which the taking process says that it is still at work. */
export const KEEP_TAKEN_MS = 1000
/**
 * Time for which a process has to have held its own lease again before it takes processes that were last seen as it was,
 * give or take `TOGETHER_MS`: when nobody could renew, all look dead until each has tried again.
 */
const SETTLED_MS = 2500
const TOGETHER_MS = 2000
const SETTLED = Prisma.sql`(own.held_since IS NULL OR own.held_since < clock_timestamp() - make_interval(secs => ${SETTLED_MS / 1000}))`
const TOGETHER = Prisma.sql`make_interval(secs => ${TOGETHER_MS / 1000})`
/** Time for which the names of dead processes are kept, for the turns that others have taken over from them. */
const NAMES_MS = 3_600_000

type LeaseDeps = Pick<Deps, 'db' | 'attempts'>

/** SQL for whether a row of `processes` is of a living process. */
export const LIVES = Prisma.sql`seen_at > clock_timestamp() - make_interval(secs => ${LEASE_MS / 1000})`

/** The same for a dead process whose open polls may still receive activities. */
export const NEWLY_DEAD = Prisma.sql`NOT ${LIVES} AND taken_until IS DISTINCT FROM 'infinity'`

/** SQL for whether the process with a number lives. */
export const livesSql = (number: Prisma.Sql): Prisma.Sql =>
  Prisma.sql`EXISTS (SELECT FROM processes WHERE number = ${number} AND ${LIVES})`

/**
 * SQL for whether the row with an id is in this process's share of a sweep. Living processes share all rows; a process
 * that holds no lease sweeps every row. The others take a dead process's share when its lease has run out.
 */
export const inShareSql = ({ attempts }: Pick<Deps, 'attempts'>, id: Prisma.Sql): Prisma.Sql => {
  const own = Prisma.sql`${attempts.process}::bigint`
  const count = Prisma.sql`SELECT count(*) FROM processes WHERE ${LIVES}`
  return Prisma.sql`(NOT ${livesSql(own)}
    OR (hashtext(${id}::text) & 2147483647) % greatest((${count}), 1) = (${count} AND number < ${own}))`
}

/** SQL for whether this process lives, and knows which others do. */
export const knowsOthersSql = ({ attempts }: Pick<Deps, 'attempts'>): Prisma.Sql =>
  Prisma.sql`EXISTS (SELECT FROM processes own WHERE own.number = ${attempts.process}::bigint AND ${LIVES} AND ${SETTLED})`

/** Gives up the steps that this process has begun. Its activities are left to it for a moment. */
export async function releaseLease({ db, attempts }: LeaseDeps): Promise<void> {
  await db.$executeRaw`
    UPDATE processes SET seen_at = 'epoch', ended_at = clock_timestamp(), taken_until = clock_timestamp() + make_interval(secs => ${STOPS_MS / 1000})
    WHERE number = ${attempts.process}::bigint`
}

type Other = { number: number; place: string | null; hasRunOut: boolean }

/**
 * Takes the dead processes, so that no other process takes them for a while: each whose lease has run out, and at once
 * each that has ended on this machine. Returns their numbers.
 */
export async function takeDead({ db, attempts }: LeaseDeps): Promise<number[]> {
  const others = await db.$queryRaw<Other[]>`
    SELECT number::float8, place, NOT ${LIVES} AS "hasRunOut" FROM processes
    WHERE number <> ${attempts.process}::bigint AND coalesce(taken_until < clock_timestamp(), true)`
  const ended = others.filter(({ place }) => place !== null && hasEnded(place)).map(({ number }) => number)
  if (ended.length === 0 && !others.some(({ hasRunOut }) => hasRunOut)) return []
  const dead = await db.$queryRaw<{ number: number }[]>`
    UPDATE processes SET taken_until = clock_timestamp() + make_interval(secs => ${TAKEN_MS / 1000}),
      ended_at = greatest(ended_at, seen_at),
      -- A millisecond more: the column is rounded.
      seen_at = least(seen_at, clock_timestamp() - make_interval(secs => ${(LEASE_MS + 1) / 1000}))
    WHERE (NOT ${LIVES} OR number = ANY (${ended}::bigint[]))
      AND coalesce(taken_until < clock_timestamp(), true) AND number <> ${attempts.process}::bigint
      AND EXISTS (
        SELECT FROM processes own WHERE own.number = ${attempts.process}::bigint AND ${LIVES}
          AND (${SETTLED} OR greatest(processes.ended_at, processes.seen_at)
            NOT BETWEEN own.lapsed_at - ${TOGETHER} AND own.lapsed_at + ${TOGETHER})
      )
    RETURNING number::float8`
  return dead.map(({ number }) => number)
}

/** Keeps other processes from taking dead ones that this process has taken, as long as it lives itself. */
export async function keepTaken({ db, attempts }: LeaseDeps, numbers: number[]): Promise<void> {
  await db.$executeRaw`
    UPDATE processes SET taken_until = clock_timestamp() + make_interval(secs => ${TAKEN_MS / 1000})
    WHERE number = ANY (${numbers}::bigint[]) AND NOT ${LIVES} AND ${livesSql(Prisma.sql`${attempts.process}::bigint`)}`
}

/** Whether a process is dead, according to the record, where a new process is missing at first. */
export async function isDead({ db }: Pick<Deps, 'db'>, number: number): Promise<boolean> {
  const [row] = await db.$queryRaw<{ dead: boolean }[]>`
    SELECT NOT ${LIVES} AS dead FROM processes WHERE number = ${number}::bigint`
  return row?.dead === true
}

/**
 * Lets any process take a dead one's work again: at once if some of it is left, else after a while, because its open polls may
 * have received activities meanwhile. That is likely just after its end, and past after `POLLS_MS`. Deletes those dead for long.
 */
export async function leaveDead({ db }: Pick<Deps, 'db'>, number: number, isDone: boolean): Promise<void> {
  await db.$executeRaw`
    WITH deleted AS (
      DELETE FROM processes
      WHERE taken_until = 'infinity' AND ended_at < clock_timestamp() - make_interval(secs => ${NAMES_MS / 1000})
    )
    UPDATE processes SET taken_until = CASE
      WHEN NOT ${isDone} THEN clock_timestamp()
      WHEN seen_at < clock_timestamp() - make_interval(secs => ${POLLS_MS / 1000}) THEN 'infinity'
      ELSE clock_timestamp() + greatest(interval '0.4 seconds', (clock_timestamp() - ended_at) / 8)
    END
    WHERE number = ${number}::bigint AND NOT ${LIVES}`
}
