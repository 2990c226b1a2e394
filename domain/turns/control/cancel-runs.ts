import type { CancelledTurns } from '../../../contract/runs.ts'
import { atOnce } from '../../../lib/at-once.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { Actor } from '../../kit/actor.ts'
import { invalid } from '../../kit/errors.ts'
import { readFiltered } from '../../kit/filtered-reads.ts'
import { checkTimes } from '../../kit/filters.ts'
import { toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { conditionsOf, type RunFilter, statusesOf } from '../runs/filter.ts'
import { type Cancelled, cancelOfSessions, notifyCancelled } from './cancel.ts'

type Found = { id: string; sessionId: string }

/** Turns of a request; the rest is left for the next one. */
const MAX_TURNS = 5000
const MAX_MS = 30_000
/** Sessions of a transaction, and their turns. */
const SESSIONS_AT_ONCE = 25
const TURNS_AT_ONCE = 200
/** Transactions at once. Other requests need connections, too. */
const GROUPS_AT_ONCE = 4
/** Time that a transaction waits for a lock, while it holds locks of many sessions or of one. */
const GROUP_LOCK_MS = 200
const SESSION_LOCK_MS = 2000

/**
 * Cancels the unfinished turns that match, the oldest first. A transaction has a few sessions, so a repetition after an
 * interruption does the rest. Turns that begin meanwhile stay. Throws `invalid` without a filter.
 */
export async function cancelRuns(
  deps: Deps,
  actor: Actor,
  { all, ...filter }: RunFilter & { all?: boolean | undefined },
): Promise<CancelledTurns> {
  const isFiltered = Object.values(filter).some(Boolean)
  if (!isFiltered && !all) throw invalid('Give at least one filter, or all: true for all unfinished turns')
  if (isFiltered && all) throw invalid('all: must not be given together with a filter')
  checkTimes(filter)
  const found = await findUnfinished(deps, actor, filter)
  const { cancelled, left } = await cancelBySession(deps, actor, found.slice(0, MAX_TURNS))
  // After all ends are recorded, which matter more; the sweeper sends the notices that this process does not.
  notifyCancelled(deps, actor.organizationId, cancelled)
  return { cancelled: cancelled.length, more: left > 0 || found.length > MAX_TURNS }
}

const findUnfinished = (deps: Deps, actor: Actor, filter: RunFilter): Promise<Found[]> =>
  readFiltered(deps, actor, async (db) => {
    const { sql } = await conditionsOf(deps, db, actor, filter)
    const statuses = statusesOf(filter, ['queued', 'active', 'waiting'])
    return db.$queryRaw<Found[]>`
      SELECT t.id, t.session_id AS "sessionId" FROM turns t
      WHERE ${sql} AND t.status = ANY (${statuses}::turn_status[]) ORDER BY t.created_at, t.id LIMIT ${MAX_TURNS + 1}`
  })

/** Returns the cancelled turns, and how many sessions are left: the time was over, or their cancellation failed. */
async function cancelBySession(
  deps: Deps,
  actor: Actor,
  found: Found[],
): Promise<{ cancelled: Cancelled[]; left: number }> {
  const sessions = [...Map.groupBy(found, ({ sessionId }) => sessionId).values()]
  const until = performance.now() + MAX_MS
  const cancelled: Cancelled[] = []
  let away: unknown
  /** Returns the groups whose turns were not cancelled. */
  const cancelEach = async (groups: Found[][], lockMs: number, consequence: string): Promise<Found[][]> => {
    const left = new Set(groups)
    const cancel = async (group: Found[]) => {
      const [sessionIds, turnIds] = [group.map(({ sessionId }) => sessionId), group.map(({ id }) => id)]
      try {
        cancelled.push(...(await cancelOfSessions(deps, actor, { sessionIds, turnIds, lockMs })))
        left.delete(group)
      } catch (error) {
        if (deps.unavailability(error) !== undefined) away = error
        const fields = { session: toId('session', sessionIds[0] ?? ''), err: (error as Error).message }
        warnRarely(deps.log, fields, `turns not cancelled; ${consequence}`)
      }
    }
    await atOnce(groups, GROUPS_AT_ONCE, cancel, () => performance.now() > until || away !== undefined)
    return [...left]
  }
  const rest = await cancelEach(inGroups(sessions), GROUP_LOCK_MS, 'they are cancelled by session')
  const restOf = rest.flatMap((group) => [...Map.groupBy(group, ({ sessionId }) => sessionId).values()])
  const left = await cancelEach(restOf, SESSION_LOCK_MS, 'the caller is told to repeat the request')
  if (away !== undefined && cancelled.length === 0) throw away
  return { cancelled, left: left.length }
}

/** Puts the turns of sessions together for transactions. A session with many turns has its own. */
function inGroups(sessions: Found[][]): Found[][] {
  const groups: Found[][] = []
  let count = 0
  for (const session of sessions) {
    const last = groups.at(-1)
    if (last === undefined || count === SESSIONS_AT_ONCE || last.length + session.length > TURNS_AT_ONCE) {
      groups.push([...session])
      count = 1
    } else {
      last.push(...session)
      count++
    }
  }
  return groups
}
