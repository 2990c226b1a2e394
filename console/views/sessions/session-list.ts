import type { Session } from 'agent-session-client'
import { api, organization } from '../../service.ts'
import { effect, type Signal, signal } from '../../ui.ts'

/** Filter of sessions, as the address has it. Empty texts match all. */
export type Filter = { search: string; status: string; agent: string; tag: string }
const NAMES = ['search', 'status', 'agent', 'tag'] as const
export const ALL: Filter = { search: '', status: '', agent: '', tag: '' }

type Query = NonNullable<Parameters<typeof api.sessions.list>[0]>

/** Choices of the filter by status. A session whose last turn failed counts as failed until it works again. */
export const STATUSES: Record<string, { label: string; query: Query }> = {
  active: { label: 'Working', query: { status: 'active' } },
  waiting: { label: 'Waiting for you', query: { status: 'waitingfortoolresults' } },
  failed: { label: 'Failed', query: { status: 'idle', last_turn_status: 'failed' } },
  idle: { label: 'Idle', query: { status: 'idle' } },
  new: { label: 'New', query: { status: 'started' } },
}

export const filterOf = (query: URLSearchParams): Filter => {
  const entries = NAMES.map((name) => [name, query.get(name) ?? ''])
  return Object.fromEntries(entries)
}

/** Returns the address of the list with a filter. */
export function placeOf(filter: Filter): string {
  const given = Object.entries(filter).filter(([, value]) => value !== '')
  return `#/sessions${given.length > 0 ? '?' : ''}${new URLSearchParams(given)}`
}

export const isFiltered = (filter: Filter): boolean => NAMES.some((name) => filter[name] !== '')

const queryOf = ({ search, status, agent, tag }: Filter): Query => ({
  ...STATUSES[status]?.query,
  ...(search && { search }),
  ...(agent && { agent_id: agent }),
  ...(tag && { tag: [tag] }),
})

/** Sessions that are read at first, and whenever they may have changed. */
const FIRST = 50
/** Sessions that are read when more are asked for. */
const MORE = 100
/** Total from which filtered sessions are no longer counted. */
const MAX_COUNTED = 10_000

/** Pages of a list that were loaded. They are kept while a session is shown. */
export type SessionList = {
  filter: Filter
  /** Undefined until they are loaded. */
  sessions: Signal<Session[] | undefined>
  /** Number of all matching sessions, such as `1,234`. */
  total: Signal<string>
  hasMore: Signal<boolean>
  error: Signal<unknown>
  /** Reads the first page again. */
  refresh(): Promise<void>
  more(): Promise<void>
  /** Place of the reader: how far the page was scrolled, and the session that was opened last. */
  place: { scroll: number; opened: string | undefined }
}

/** Filter of the list that was shown last. It stays while sessions are shown beside the list. */
export const shownFilter = signal<Filter>(ALL)
let kept: { key: string; list: SessionList } | undefined
// Another organization has other agents, tags and sessions.
effect(() => {
  if (organization.value === '') return
  shownFilter.value = ALL
  kept = undefined
})

/** Returns the list of a filter. The list that was shown last is kept. */
export function listFor(filter: Filter): SessionList {
  const key = `${organization.value} ${placeOf(filter)}`
  if (kept?.key !== key) kept = { key, list: createList(filter) }
  return kept.list
}

/** Reads the list that was shown last again, if there is one: a session has changed. */
export const refreshList = (): Promise<void> | undefined => kept?.list.refresh()

/** Takes a deleted session out of the list that was shown last. */
export function forgetSession(id: string): void {
  if (kept?.list.sessions.value === undefined) return
  kept.list.sessions.value = kept.list.sessions.value.filter((session) => session.id !== id)
}

function createList(filter: Filter): SessionList {
  const sessions = signal<Session[] | undefined>(undefined)
  const total = signal('')
  const hasMore = signal(false)
  const error = signal<unknown>(undefined)
  let reading: Promise<void> | undefined
  let isOutdated = false

  const read = async (offset: number, limit: number, merge: (page: Session[]) => Session[]) => {
    try {
      const page = await api.sessions.list({ ...queryOf(filter), offset, limit })
      const all = merge(page.data)
      sessions.value = all
      hasMore.value = page.data.length > 0 && page.total > all.length
      const isCut = page.total >= MAX_COUNTED && isFiltered({ ...filter, agent: '' })
      total.value = `${page.total.toLocaleString()}${isCut ? '+' : ''}`
      error.value = undefined
    } catch (problem) {
      error.value = problem
    }
  }
  const refresh = (): Promise<void> => {
    isOutdated = reading !== undefined
    reading ??= read(0, FIRST, (page) => [...page, ...after(sessions.value, page)]).finally(() => {
      reading = undefined
      if (isOutdated) void refresh()
    })
    return reading
  }
  const more = async () => {
    await reading
    const { length } = sessions.value ?? []
    await read(length, MORE, (page) => [...(sessions.value ?? []), ...newOf(sessions.value, page)])
  }
  return { filter, sessions, total, hasMore, error, refresh, more, place: { scroll: 0, opened: undefined } }
}

/** Returns the sessions that follow a page which was read again. */
function after(before: Session[] = [], page: Session[]): Session[] {
  const last = before.findIndex(({ id }) => id === page.at(-1)?.id)
  return last < 0 ? [] : newOf(page, before.slice(last + 1))
}

/** New sessions may have moved others to the next page. */
function newOf(before: Session[] = [], page: Session[]): Session[] {
  const known = new Set(before.map(({ id }) => id))
  return page.filter(({ id }) => !known.has(id))
}
