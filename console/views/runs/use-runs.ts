import type { ListWaitingTurnsData, Turn } from 'agent-session-client'
import { useEvery, useLoad } from '../../load.ts'
import { isUnfinished } from '../../parts/run-time.ts'
import { api } from '../../service.ts'
import { type RefObject, useLayoutEffect, useRef, useState } from '../../ui.ts'
import { filtersOf } from './filters.ts'

/** Interval between reads, for each hundred rows. */
const LOOK_MS = 5000
const PAGE = 50
/** Size of the service's pages. */
const MOST = 100
/** Shown runs that have left the list, and whose end is looked up. */
const MAX_LEFT = 20

type Found = { runs: Turn[]; left: Turn[]; hasMore: boolean }

export type Runs = {
  /** Shown runs, undefined until they are loaded. */
  rows: Turn[] | undefined
  error: unknown
  /** Number of runs that wait to be shown. */
  fresh: number
  showFresh(): void
  hasMore: boolean
  more(): void
  /** Reads again at once. */
  reload(): void
}

/**
 * Runs of an address, live. While somebody points at the list, or has the focus in it, its rows stay where they are, and
 * only what they say changes.
 */
export function useRuns(query: URLSearchParams, list: RefObject<HTMLElement | null>): Runs {
  const [count, setCount] = useState(PAGE)
  const [rows, setRows] = useState<Turn[] | undefined>(undefined)
  const isAsked = useRef(true)
  const { value: found, error, reload, refresh } = useLoad(() => readRuns(query, count, rows ?? []), [count])
  useEvery(LOOK_MS * Math.ceil(count / MOST), refresh)
  useLayoutEffect(() => {
    if (found === undefined) return
    const mayMove = isAsked.current || rows === undefined || !isPointedAt(list.current)
    isAsked.current = false
    setRows(mayMove ? found.runs : standing(rows, found))
  }, [found])
  const shown = new Set(rows?.map(({ id }) => id))
  const ask = () => {
    isAsked.current = true
  }
  return {
    rows,
    error,
    fresh: found?.runs.filter(({ id }) => !shown.has(id)).length ?? 0,
    showFresh: () => setRows(found?.runs),
    hasMore: found?.hasMore ?? false,
    more: () => {
      ask()
      setCount(count + (count < MOST ? MOST - PAGE : MOST))
    },
    reload,
  }
}

/** On a touch screen nobody can say at which row a finger will point. */
const isPointedAt = (list: HTMLElement | null): boolean =>
  (list?.matches(':hover, :focus-within') ?? false) || matchMedia('(hover: none)').matches

/** Returns the shown rows in their places, with what is known of them now. */
function standing(rows: Turn[], { runs, left }: Found): Turn[] {
  const latest = new Map([...left, ...runs].map((run) => [run.id, run]))
  return rows.map((run) => latest.get(run.id) ?? run)
}

async function readRuns(query: URLSearchParams, count: number, rows: Turn[]): Promise<Found> {
  const order = (query.get('order') ?? undefined) as NonNullable<ListWaitingTurnsData['query']>['order']
  const filters = filtersOf(query)
  const runs: Turn[] = []
  let after: string | undefined
  do {
    const limit = Math.min(MOST, count - runs.length)
    const { data, next } = await api.turns.listWaitingTurns({ ...filters, order, after, limit })
    runs.push(...data)
    after = next ?? undefined
  } while (after !== undefined && runs.length < count)
  return { runs, left: await readLeft(rows, runs), hasMore: after !== undefined }
}

/** Reads the runs that have left the list unfinished: their status no longer matches. */
async function readLeft(rows: Turn[], runs: Turn[]): Promise<Turn[]> {
  const found = new Set(runs.map(({ id }) => id))
  const left = rows.filter((run) => isUnfinished(run) && !found.has(run.id)).slice(0, MAX_LEFT)
  const read = left.map(({ session_id, id }) => api.turns.get({ session_id, turn_id: id }).catch(() => []))
  return (await Promise.all(read)).flat()
}
