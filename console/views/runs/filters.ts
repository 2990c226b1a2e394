import type { ListWaitingTurnsData, Turn, TurnCounts } from 'agent-session-client'
import { link } from '../../router.ts'
import { serviceNow } from '../../service.ts'

/** Filters of runs as the service takes them. */
export type Filters = Omit<NonNullable<ListWaitingTurnsData['query']>, 'limit' | 'offset' | 'after' | 'order'>

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Periods up to now, which a link keeps as such: `?last=1h`. */
export const PERIODS: Record<string, { title: string; ms: number }> = {
  '1h': { title: 'Last hour', ms: HOUR_MS },
  '24h': { title: 'Last 24 hours', ms: DAY_MS },
  '7d': { title: 'Last 7 days', ms: 7 * DAY_MS },
  '30d': { title: 'Last 30 days', ms: 30 * DAY_MS },
}

/** Names in the address that the service takes unchanged. */
const TEXTS = ['agent_id', 'session_id', 'user_id', 'error_code', 'from', 'to', 'search'] as const
/** Names of all filters, besides the statuses. */
export const FILTERS: string[] = [...TEXTS, 'last', 'order']

/** Returns the filters in an address. A period ends now. */
export function filtersOf(query: URLSearchParams): Filters {
  const filters: Record<string, unknown> = {}
  for (const name of TEXTS) if (query.get(name)) filters[name] = query.get(name)
  const period = PERIODS[query.get('last') ?? '']
  if (period !== undefined) filters.from = new Date(serviceNow() - period.ms).toISOString()
  if (query.has('status')) filters.status = query.getAll('status')
  if (query.get('stalled') === 'true') filters.stalled = 'true'
  return filters
}

/** Returns the address of the runs with some filters changed; undefined or '' removes one. */
export function runsLink(query: URLSearchParams, changes: Record<string, string | undefined>): string {
  const changed = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changes)) {
    changed.delete(name)
    if (value) changed.set(name, value)
  }
  const text = changed.toString()
  return text === '' ? link('runs') : `${link('runs')}?${text}`
}

type Chip = { title: string; status?: Turn['status']; isStalled?: boolean; count(counts: TurnCounts): number }

/** Choices of the status, each with the number of its runs. */
export const CHIPS: Chip[] = [
  {
    title: 'All',
    count: ({ queued, active, waiting, completed, failed, cancelled }) =>
      queued + active + waiting + completed + failed + cancelled,
  },
  { title: 'Queued', status: 'queued', count: ({ queued }) => queued },
  { title: 'Running', status: 'active', count: ({ active }) => active },
  { title: 'Stalled', isStalled: true, count: ({ stalled }) => stalled },
  { title: 'Waiting', status: 'waiting', count: ({ waiting }) => waiting },
  { title: 'Completed', status: 'completed', count: ({ completed }) => completed },
  { title: 'Failed', status: 'failed', count: ({ failed }) => failed },
  { title: 'Cancelled', status: 'cancelled', count: ({ cancelled }) => cancelled },
]

/** Whether an address chooses the status of a chip, and nothing else. */
export const isChosen = (query: URLSearchParams, { status, isStalled = false }: Chip): boolean =>
  (query.get('stalled') === 'true') === isStalled && query.getAll('status').join() === (status ?? '')

/** Returns the filters for stopping: of a list by duration, only what has begun is shown. */
export function unfinishedOf(query: URLSearchParams): Filters {
  const filters = filtersOf(query)
  if (query.get('order') !== 'longest') return filters
  const shown: Turn['status'][] = ['active', 'waiting']
  return { ...filters, status: shown.filter((status) => filters.status?.includes(status) ?? true) }
}
