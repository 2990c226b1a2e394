import { Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../../deps.ts'

/** Time in s for which a process counts as living after it was last seen. */
const LEASE_SECS = 3

type Place = Pick<Deps, 'db' | 'attempts'>

/** SQL for whether the process with a number lives. */
export const livesSql = (number: Prisma.Sql): Prisma.Sql => Prisma.sql`EXISTS (
  SELECT FROM processes WHERE number = ${number} AND seen_at > clock_timestamp() - make_interval(secs => ${LEASE_SECS})
)`

/** Notes that this process lives: the steps that it has begun are left to it. */
export async function renewLease({ db, attempts }: Place): Promise<void> {
  await db.$queryRaw`
    INSERT INTO processes (number, seen_at) VALUES (${attempts.process}::bigint, clock_timestamp())
    ON CONFLICT (number) DO UPDATE SET seen_at = excluded.seen_at`
}

/** Gives up the steps that this process has begun, and forgets processes that have died long ago. */
export async function releaseLease({ db, attempts }: Place): Promise<void> {
  await db.$queryRaw`
    DELETE FROM processes WHERE number = ${attempts.process}::bigint OR seen_at < clock_timestamp() - interval '1 hour'`
}
