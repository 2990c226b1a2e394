import type { TurnErrorCode } from '../../../contract/errors.ts'
import type { AgentId, SessionId, UserId } from '../../../contract/kit/ids.ts'
import { Prisma, type TurnStatus } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { allOf } from '../../kit/filters.ts'
import { checkSearch, MAX_FOUND, matchesSql } from '../../kit/search.ts'
import type { Deps } from '../deps.ts'
import { isStalledSql } from './stalled.ts'

/** Filters of turns. Absent ones match all. */
export type RunFilter = {
  status?: TurnStatus[] | undefined
  stalled?: boolean | undefined
  agent_id?: AgentId | undefined
  session_id?: SessionId | undefined
  user_id?: UserId | undefined
  error_code?: TurnErrorCode | undefined
  from?: Date | undefined
  to?: Date | undefined
  search?: string | undefined
}

type Db = Pick<Prisma.TransactionClient, '$queryRaw'>

/** Whether one index answers the filter, however few turns match. */
export const isDirect = ({ agent_id, user_id, session_id, error_code, search, stalled }: RunFilter): boolean =>
  !search && !stalled && [agent_id, user_id, session_id, error_code].filter(Boolean).length < 2

/** Leaves out the turns that forks have copied. */
export const isRunSql = Prisma.sql`NOT t.is_copy`

/** Conditions on `turns t`. `found` has the ids of the turns that the search found, unless these are too many. */
export type Conditions = { sql: Prisma.Sql; found: string[] | undefined }

/** Returns the conditions of a filter, without its statuses. Throws `invalid`. */
export async function conditionsOf(deps: Deps, db: Db, actor: Actor, filter: RunFilter): Promise<Conditions> {
  const { agent_id, session_id, user_id, error_code, from, to, search, stalled } = filter
  const found = search ? await findBySearch(db, actor, search) : undefined
  const conditions = [
    Prisma.sql`t.organization_id = ${actor.organizationId}::uuid`,
    agent_id && Prisma.sql`t.agent_id = ${agent_id}::uuid`,
    session_id && Prisma.sql`t.session_id = ${session_id}::uuid`,
    user_id && Prisma.sql`t.user_id = ${user_id}::uuid`,
    error_code && Prisma.sql`t.error_code = ${error_code}`,
    from && Prisma.sql`t.created_at >= ${from}`,
    to && Prisma.sql`t.created_at < ${to}`,
    stalled && isStalledSql(deps),
    search && (found ? Prisma.sql`t.id = ANY (${found}::uuid[])` : hasInputSql(actor, search)),
  ]
  return { sql: allOf(conditions), found }
}

/** Statuses of a filter. A stalled turn is active. */
export function statusesOf({ status, stalled }: RunFilter, among: readonly TurnStatus[]): TurnStatus[] {
  return among.filter((one) => (!status || status.includes(one)) && (!stalled || one === 'active'))
}

/** Returns the turns whose message matches; undefined if there are more than MAX_FOUND. */
async function findBySearch(db: Db, { organizationId }: Actor, search: string): Promise<string[] | undefined> {
  await checkSearch(db, search)
  const rows = await db.$queryRaw<{ id: string }[]>`
    SELECT t.id FROM (
      SELECT session_id, sequence FROM session_texts
      WHERE ${matchesSql(organizationId, search, 'input')} LIMIT ${MAX_FOUND + 1}
    ) AS x JOIN turns t ON t.session_id = x.session_id AND t.input_sequence = x.sequence`
  return rows.length > MAX_FOUND ? undefined : rows.map(({ id }) => id)
}

/** OFFSET keeps Postgres from joining, which would read all matches for one page. */
const hasInputSql = ({ organizationId }: Actor, search: string): Prisma.Sql => Prisma.sql`EXISTS (
  SELECT FROM session_texts
  WHERE session_id = t.session_id AND sequence = t.input_sequence AND ${matchesSql(organizationId, search, 'input')} OFFSET 0
)`
