import type { GetUsageData, UsageRow } from 'agent-session-client'
import { serviceNow } from '../../service.ts'

type Group = NonNullable<NonNullable<GetUsageData['query']>['group_by']>[number]

const DAY_MS = 86_400_000
/** Periods up to now, in days. */
export const PERIODS = [7, 30, 90]
const DEFAULT_DAYS = 30

type Grouping = { group: Group; title: string /** Title of a row. */; one: string; nameOf(row: UsageRow): string }

/** Groups of the table by their names in the address. */
export const GROUPINGS: Record<string, Grouping> = {
  agent: {
    group: 'agent',
    title: 'Agents',
    one: 'Agent',
    nameOf: (row) => nameOr(row.agent_name, row.agent_id, 'Without an agent'),
  },
  model: { group: 'model', title: 'Models', one: 'Model', nameOf: ({ model }) => model ?? 'Unknown model' },
  user: {
    group: 'user',
    title: 'People',
    one: 'Person',
    nameOf: (row) => nameOr(row.user_email, row.user_id, 'Schedules'),
  },
  key: {
    group: 'api_key',
    title: 'API keys',
    one: 'API key',
    nameOf: (row) => nameOr(row.api_key_name, row.api_key_id, 'Signed in'),
  },
  day: { group: 'day', title: 'Days', one: 'Day', nameOf: ({ start }) => dayOf(start ?? '') },
}
export const DEFAULT_GROUPING = 'agent'

/** Names of deleted things are not known. */
const nameOr = (name: string | null | undefined, id: string | null | undefined, none: string): string =>
  name ?? (id ? 'Deleted' : none)

/** Returns the period of an address: whole days in UTC, up to now. */
export function periodOf(query: URLSearchParams): { days: number; from: string } {
  const given = Number(query.get('days'))
  const days = PERIODS.includes(given) ? given : DEFAULT_DAYS
  const today = Math.floor(serviceNow() / DAY_MS) * DAY_MS
  return { days, from: new Date(today - (days - 1) * DAY_MS).toISOString() }
}

export type Day = { start: string; row: UsageRow | undefined }

/** Returns each day of a period, from the first one to today. */
export function daysOf({ days, from }: { days: number; from: string }, rows: UsageRow[]): Day[] {
  const byDay = new Map(rows.map((row) => [Date.parse(row.start ?? ''), row]))
  return Array.from({ length: days }, (_, index) => {
    const at = Date.parse(from) + index * DAY_MS
    return { start: new Date(at).toISOString(), row: byDay.get(at) }
  })
}

/** Returns a day in words. Days are days in UTC. */
export const dayOf = (start: string): string =>
  new Date(start).toLocaleDateString(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })

export const tokensOf = ({ input_tokens, output_tokens }: UsageRow): number => input_tokens + output_tokens
