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
/** Sessions of a transaction. */
const SESSIONS_AT_ONCE = 25
/** Transactions at once. Other requests need connections, too. */
const GROUPS_AT_ONCE = 4

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

/** Returns the cancelled turns, and how many groups of sessions are left: the time was over, or they failed. */
async function cancelBySession(
  deps: Deps,
  actor: Actor,
  found: Found[],
): Promise<{ cancelled: Cancelled[]; left: number }> {
  const sessions = [...Map.groupBy(found, ({ sessionId }) => sessionId).values()]
  const groups = Array.from({ length: Math.ceil(sessions.length / SESSIONS_AT_ONCE) }, (_, index) =>
    sessions.slice(index * SESSIONS_AT_ONCE, (index + 1) * SESSIONS_AT_ONCE),
  )
  const until = performance.now() + MAX_MS
  const cancelled: Cancelled[] = []
  let left = groups.length
  let failure: unknown
  const isOver = () =>
    performance.now() > until || (failure !== undefined && deps.unavailability(failure) !== undefined)
  const cancel = async (group: Found[][]) => {
    const turns = group.flat()
    const sessionIds = turns.map(({ sessionId }) => sessionId)
    cancelled.push(...(await cancelOfSessions(deps, actor, { sessionIds, turnIds: turns.map(({ id }) => id) })))
  }
  await atOnce(
    groups,
    GROUPS_AT_ONCE,
    async (group) => {
      // A session that is locked for long, or whose turns cannot be ended, keeps no other from being cancelled.
      const rest = await cancel(group).then(
        () => [],
        () => group,
      )
      let failed = 0
      for (const session of rest) {
        await cancel([session]).catch((error: Error) => {
          failed++
          failure = error
          const fields = { session: toId('session', session[0]?.sessionId ?? ''), err: error.message }
          warnRarely(deps.log, fields, 'turns not cancelled; the caller is told to repeat the request')
        })
        if (isOver()) return
      }
      if (failed === 0) left--
    },
    isOver,
  )
  if (failure !== undefined && cancelled.length === 0) throw failure
  return { cancelled, left }
}
