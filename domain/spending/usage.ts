import type { Usage, UsageGroup, UsageRow } from '../../contract/usage.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { OrganizationScope } from '../kit/actor.ts'
import type { Deps } from '../kit/deps.ts'
import { invalid } from '../kit/errors.ts'
import { allOf } from '../kit/filters.ts'
import { toId } from '../kit/ids.ts'
import { presentCost } from '../kit/usage.ts'
import { NOBODY, USAGE_COLUMN } from './usage-columns.ts'

/** Filters of usage. */
export type UsageQuery = {
  group_by?: UsageGroup[] | undefined
  from?: Date | undefined
  to?: Date | undefined
  agent_id?: string | undefined
  session_id?: string | undefined
  user_id?: string | undefined
  api_key_id?: string | undefined
  model?: string | undefined
  limit: number
  offset: number
}

type Sums = {
  calls: bigint
  unpricedCalls: bigint
  inputTokens: bigint
  outputTokens: bigint
  cacheReadTokens: bigint
  cacheCreationTokens: bigint
  costUsd: Prisma.Decimal
}

type Row = Sums & {
  start?: Date
  agent?: string
  agentName?: string | null
  model?: string
  user?: string
  userEmail?: string | null
  apiKey?: string
  apiKeyName?: string | null
  session?: string
  sessionTitle?: string | null
}

const HOUR_MS = 3_600_000
const DEFAULT_HOURS = 30 * 24

const SUMS = Prisma.sql`coalesce(sum(calls), 0)::bigint AS calls, coalesce(sum(unpriced_calls), 0)::bigint AS "unpricedCalls",
  coalesce(sum(input_tokens), 0)::bigint AS "inputTokens", coalesce(sum(output_tokens), 0)::bigint AS "outputTokens",
  coalesce(sum(cache_read_tokens), 0)::bigint AS "cacheReadTokens",
  coalesce(sum(cache_creation_tokens), 0)::bigint AS "cacheCreationTokens", coalesce(sum(cost_usd), 0) AS "costUsd"`

/** How usage is grouped: what a row selects, what it is grouped by, and how its group is named. */
const GROUPS: Record<UsageGroup, { select: Prisma.Sql; by: Prisma.Sql; name?: Prisma.Sql }> = {
  hour: { select: Prisma.sql`hour AS start`, by: Prisma.sql`hour` },
  day: { select: Prisma.sql`date_trunc('day', hour, 'UTC') AS start`, by: Prisma.sql`date_trunc('day', hour, 'UTC')` },
  model: { select: Prisma.sql`model`, by: Prisma.sql`model` },
  agent: {
    select: Prisma.sql`agent_id AS agent`,
    by: USAGE_COLUMN.agent,
    name: Prisma.sql`(SELECT name FROM agents WHERE id = grouped.agent AND organization_id = grouped.organization) AS "agentName"`,
  },
  user: {
    select: Prisma.sql`user_id AS "user"`,
    by: USAGE_COLUMN.user,
    name: Prisma.sql`(SELECT u.email FROM users u JOIN members m ON m.user_id = u.id AND m.organization_id = grouped.organization
      WHERE u.id = grouped."user") AS "userEmail"`,
  },
  api_key: {
    select: Prisma.sql`api_key_id AS "apiKey"`,
    by: USAGE_COLUMN.api_key,
    name: Prisma.sql`(SELECT name FROM api_keys WHERE id = grouped."apiKey" AND organization_id = grouped.organization) AS "apiKeyName"`,
  },
  session: {
    select: Prisma.sql`session_id AS session`,
    by: USAGE_COLUMN.session,
    name: Prisma.sql`(SELECT title FROM sessions WHERE id = grouped.session AND organization_id = grouped.organization) AS "sessionTitle"`,
  },
}

/**
 * Sums the usage of an organization's model calls, grouped, latest first and then by cost. Throws `invalid` for a time
 * after the end, and for both hours and days.
 */
export async function readUsage(deps: Deps, scope: OrganizationScope, query: UsageQuery): Promise<Usage> {
  const groups = [...new Set(query.group_by ?? [])]
  if (groups.includes('hour') && groups.includes('day')) throw invalid('group_by: hour and day cannot be combined')
  const to = floorToHour(query.to?.getTime() ?? Date.now() + HOUR_MS)
  const from = floorToHour(query.from?.getTime() ?? Math.max(0, to.getTime() - DEFAULT_HOURS * HOUR_MS))
  if (from >= to) throw invalid('from: must be at least an hour before to')
  const where = filters(scope, query, from, to)
  const [total] = await deps.db.$queryRaw<Sums[]>`SELECT ${SUMS} FROM usage_hours WHERE ${where}`
  if (total === undefined) throw new Error('A sum has a row.')
  const rows = groups.length === 0 ? [total] : await readGroups(deps, scope, groups, where, query)
  return {
    data: rows.slice(0, query.limit).map((row) => presentRow(row, groups)),
    total: presentSums(total),
    from: from.toISOString(),
    to: to.toISOString(),
    has_more: rows.length > query.limit,
  }
}

const floorToHour = (ms: number): Date => new Date(Math.floor(ms / HOUR_MS) * HOUR_MS)

function filters({ organizationId }: OrganizationScope, query: UsageQuery, from: Date, to: Date): Prisma.Sql {
  const { agent_id, session_id, user_id, api_key_id, model } = query
  const equal = (column: Prisma.Sql, id: string | undefined) => id && Prisma.sql`${column} = ${id}::uuid`
  return allOf([
    Prisma.sql`organization_id = ${organizationId}::uuid`,
    Prisma.sql`hour >= ${from.toISOString()}::timestamptz AND hour < ${to.toISOString()}::timestamptz`,
    equal(USAGE_COLUMN.agent, agent_id),
    equal(USAGE_COLUMN.session, session_id),
    equal(USAGE_COLUMN.user, user_id),
    equal(USAGE_COLUMN.api_key, api_key_id),
    model !== undefined && Prisma.sql`${USAGE_COLUMN.model} = ${model}`,
  ])
}

/** Reads one row more than the limit, which tells that more follow. Only the groups of the page are named. */
function readGroups(
  { db }: Deps,
  { organizationId }: OrganizationScope,
  groups: UsageGroup[],
  where: Prisma.Sql,
  { limit, offset }: UsageQuery,
): Promise<Row[]> {
  const of = groups.map((group) => GROUPS[group])
  const by = Prisma.join(of.map((group) => group.by))
  const time = groups.find((group) => group === 'hour' || group === 'day')
  const order = Prisma.join([
    ...(time === undefined ? [] : [Prisma.sql`${GROUPS[time].by} DESC`]),
    Prisma.sql`sum(cost_usd) DESC, sum(input_tokens + output_tokens) DESC, ${by}`,
  ])
  const names = of.flatMap(({ name }) => name ?? [])
  return db.$queryRaw<Row[]>`
    SELECT grouped.* ${names.length === 0 ? Prisma.empty : Prisma.sql`, ${Prisma.join(names)}`} FROM (
      SELECT ${organizationId}::uuid AS organization, ${Prisma.join(of.map(({ select }) => select))}, ${SUMS},
        row_number() OVER (ORDER BY ${order}) AS place
      FROM usage_hours WHERE ${where} GROUP BY ${by} ORDER BY place LIMIT ${limit + 1} OFFSET ${offset}
    ) AS grouped ORDER BY place`
}

const presentSums = (row: Sums): Usage['total'] => ({
  calls: Number(row.calls),
  input_tokens: Number(row.inputTokens),
  output_tokens: Number(row.outputTokens),
  cache_read_tokens: Number(row.cacheReadTokens),
  cache_creation_tokens: Number(row.cacheCreationTokens),
  cost_usd: presentCost(row.costUsd) ?? '0',
  unpriced_calls: Number(row.unpricedCalls),
})

function presentRow(row: Row, groups: UsageGroup[]): UsageRow {
  const known = (id: string | undefined) => (id === undefined || id === NOBODY ? null : id)
  const wire = (prefix: 'agent' | 'session', id: string | undefined) => {
    const uuid = known(id)
    return uuid && toId(prefix, uuid)
  }
  const fields: Record<UsageGroup, Partial<UsageRow>> = {
    hour: { start: row.start?.toISOString() ?? null },
    day: { start: row.start?.toISOString() ?? null },
    agent: { agent_id: wire('agent', row.agent), agent_name: row.agentName ?? null },
    model: { model: row.model || null },
    user: { user_id: known(row.user), user_email: row.userEmail ?? null },
    api_key: { api_key_id: known(row.apiKey), api_key_name: row.apiKeyName ?? null },
    session: { session_id: wire('session', row.session), session_title: row.sessionTitle ?? null },
  }
  return Object.assign({}, ...groups.map((group) => fields[group]), presentSums(row))
}
