import { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../../deps.ts'

/** Time for which a process counts as living after it was last seen. */
export const LEASE_MS = 3000

type Place = Pick<Deps, 'db' | 'attempts'>

/** SQL for whether the process with a number lives. */
export const livesSql = (number: Prisma.Sql): Prisma.Sql => Prisma.sql`EXISTS (
  SELECT FROM processes WHERE number = ${number} AND seen_at > clock_timestamp() - make_interval(secs => ${LEASE_MS / 1000})
)`

/** Notes that this process lives: the steps that it has begun are left to it. */
export async function renewLease({ db, attempts }: Place): Promise<void> {
  await db.$queryRaw`
    INSERT INTO processes (number, seen_at) VALUES (${attempts.process}::bigint, clock_timestamp())
    ON CONFLICT (number) DO UPDATE SET seen_at = excluded.seen_at`
}

/** Gives up the steps that this process has begun. */
export async function releaseLease({ db, attempts }: Place): Promise<void> {
  await db.$queryRaw`DELETE FROM processes WHERE number = ${attempts.process}::bigint`
}

/** Deletes the leases that ran out long ago. */
export async function forgetDead({ db }: Pick<Deps, 'db'>): Promise<void> {
  await db.$queryRaw`DELETE FROM processes WHERE seen_at < clock_timestamp() - interval '1 hour'`
}
