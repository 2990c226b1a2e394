import { atOnce } from '../../../lib/at-once.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import {
  inShareSql,
  isDead,
  KEEP_TAKEN_MS,
  keepTaken,
  knowsOthersSql,
  LIVES,
  leaveDead,
  NEWLY_DEAD,
  takeDead,
} from '../run/process-lease.ts'
import { IS_NEXT } from './is-next.ts'

const AT_ONCE = 16
/** Turns and executions that one look for unclaimed activities asks Temporal about. */
const MAX_ASKED = 50
/** Time after which it asks about the same again. */
const ASK_AGAIN_MS = 1500

/**
 * What this process knows of the activities that Temporal believes to run in it, each named by its workflow, id and attempt
 * as `turn_…/1/1`.
 */
export type OwnActivities = {
  /** Whether Temporal has not answered lately, so that it may have given activities to polls that were cut off. */
  mayBeLost(): boolean
  /** Whether an activity has not come here. True only some time after it was asked for the first time. */
  isLost(activity: string): boolean
}

type Run = { id: string; kind: 'turn' | 'execution' }

const workflowOf = ({ id, kind }: Run): string => (kind === 'turn' ? toId('turn', id) : id)

/**
 * Reports to Temporal the activities that have died with their process. Missing heartbeats would report them too, but
 * some only after minutes: heartbeats are rare where a process may run thousands of activities. Returns the number of
 * turns and executions.
 */
export async function releaseDeadProcesses(deps: Deps): Promise<number> {
  const taken = new Set(await takeDead(deps))
  if (taken.size === 0) return 0
  const keeping = setInterval(() => void keepTaken(deps, [...taken]).catch(() => {}), KEEP_TAKEN_MS)
  try {
    let released = 0
    for (const number of [...taken]) released += await releaseDead(deps, number, () => taken.delete(number))
    return released
  } finally {
    clearInterval(keeping)
  }
}

async function releaseDead(deps: Deps, number: number, onDone: () => void): Promise<number> {
  const running = await deps.db.$queryRaw<Run[]>`
    SELECT DISTINCT t.id, 'turn' AS kind FROM turns t JOIN turn_steps s ON s.turn_id = t.id AND s.process = ${number}::bigint
    WHERE t.finished_at IS NULL AND t.status <> 'waiting'
    UNION ALL
    SELECT id, 'execution' FROM schedule_executions WHERE status = 'running' AND process = ${number}::bigint`
  let failed = 0
  // Without Temporal, others may do better.
  const isAway = () => failed >= AT_ONCE
  await atOnce(
    running,
    AT_ONCE,
    async (run) => {
      await release(deps, run, number).catch((error: Error) => {
        failed++
        warnRarely(deps.log, { err: error.message }, 'activities of a dead process not released; they will be')
      })
    },
    isAway,
  )
  onDone()
  await leaveDead(deps, number, failed === 0)
  if (running.length > 0) deps.log.warn({ process: number, count: running.length }, 'took over from a dead process')
  return running.length
}

async function release(deps: Deps, run: Run, number: number): Promise<void> {
  // Temporal may have given its activities to others that have died before they claimed the step.
  const isReleased = await deps.workflows.releaseActivities(workflowOf(run), (process) => isDead(deps, process))
  // Its attempt may have begun while the workflow waited for a place.
  if (!isReleased && run.kind === 'turn') await deps.workflows.resumeTurn(run.id, `process ${number}`)
}

/**
 * Reports to Temporal activities that have died with a process before it claimed their steps, as long as one is newly
 * dead: in this process's share, of turns whose model no living process asks and of executions that none runs; and of
 * turns whose step this process has claimed and abandoned. `releaseDeadProcesses` does the same for what the dead process
 * had claimed. After a silence of Temporal, it also does so for activities that were lost on their way to this process,
 * even if a dead one has the claim. `asked` keeps the time at which each turn and execution was asked about. Returns how
 * many had such an activity.
 */
export async function releaseUnclaimedActivities(
  deps: Deps,
  asked: Map<string, number>,
  own: OwnActivities,
): Promise<number> {
  const now = performance.now()
  const mayBeLost = own.mayBeLost()
  const found = await deps.db.$queryRaw<(Run & { isTaken: boolean })[]>`
    SELECT id, kind, "isTaken" FROM (${unclaimedTurns(deps, mayBeLost)} UNION ALL ${unclaimedExecutions(deps, mayBeLost)}) AS run
    WHERE created_at < now() - interval '1 second' AND id <> ALL (${[...asked.keys()]}::uuid[])
      AND (${mayBeLost} OR NOT "isTaken")
    ORDER BY created_at LIMIT ${MAX_ASKED}`
  // Nobody is asked about again before everybody was.
  if (found.length < MAX_ASKED) for (const [id, at] of asked) if (now - at > ASK_AGAIN_MS) asked.delete(id)
  let released = 0
  await atOnce(found, AT_ONCE, async ({ isTaken, ...run }) => {
    asked.set(run.id, now)
    const isLost = async (process: number, activity: string) =>
      process === deps.attempts.process ? own.isLost(activity) : !isTaken && isDead(deps, process)
    if (await deps.workflows.releaseActivities(workflowOf(run), isLost)) released++
  })
  return released
}

/** SQL for whether activities may be lost in what this process looks after: in everything, after a silence of Temporal. */
const mayHaveLost = (deps: Deps, mayBeLost: boolean, isMine: Prisma.Sql): Prisma.Sql => Prisma.sql`
  (${mayBeLost} OR (EXISTS (SELECT FROM processes WHERE ${NEWLY_DEAD}) AND ${knowsOthersSql(deps)} AND (${isMine})))`

/** SQL for turns whose model no living process asks. `isTaken`: a newly dead process has a step. */
function unclaimedTurns(deps: Deps, mayBeLost: boolean): Prisma.Sql {
  const unended = Prisma.sql`s.step LIKE 'reason:%' AND NOT EXISTS (
    SELECT FROM events WHERE turn_id = t.id AND step = s.step AND type = 'reason.completed'
  )`
  const isAbandoned = Prisma.sql`t.id = ANY (${deps.attempts.abandoned.list()}::uuid[])`
  const isHere = Prisma.sql`s.process = ${deps.attempts.process}::bigint`
  // Its claim keeps all others from asking.
  const isKept = Prisma.sql`${isAbandoned} AND EXISTS (SELECT FROM turn_steps s WHERE s.turn_id = t.id AND ${isHere} AND ${unended})`
  return Prisma.sql`
    SELECT t.id, 'turn' AS kind, t.created_at, EXISTS (
        SELECT FROM turn_steps s JOIN processes ON number = s.process WHERE s.turn_id = t.id AND ${NEWLY_DEAD}
      ) AS "isTaken"
    FROM turns t
    WHERE ${mayHaveLost(deps, mayBeLost, Prisma.sql`${inShareSql(deps, Prisma.sql`t.id`)} OR (${isKept})`)}
      AND t.finished_at IS NULL AND t.status IN ('queued', 'active') AND t.admission IS DISTINCT FROM 'waits'
      AND NOT EXISTS (SELECT FROM waiting_steps WHERE turn_id = t.id)
      AND ${IS_NEXT}
      AND NOT EXISTS (
        SELECT FROM turn_steps s JOIN processes ON number = s.process
        WHERE s.turn_id = t.id AND ${LIVES} AND ${unended} AND NOT (${isHere} AND ${isAbandoned})
      )`
}

/** The same for executions that no living process runs. Those with a turn wait for it, without a process. */
const unclaimedExecutions = (deps: Deps, mayBeLost: boolean): Prisma.Sql => {
  const runsIn = (isSo: Prisma.Sql) => Prisma.sql`EXISTS (
    SELECT FROM processes WHERE number = e.process AND e.settled_attempt < e.attempts AND ${isSo})`
  return Prisma.sql`
    SELECT e.id, 'execution', e.created_at, ${runsIn(NEWLY_DEAD)}
    FROM schedule_executions e
    WHERE ${mayHaveLost(deps, mayBeLost, inShareSql(deps, Prisma.sql`e.id`))}
      AND e.status IN ('pending', 'running') AND NOT ${runsIn(LIVES)}
      AND NOT EXISTS (SELECT FROM turns WHERE id = e.id)`
}

/**
 * Reports to Temporal the expected activities that have not come to attempts of this process: an answer of Temporal was
 * lost on its way. Returns how many.
 */
export async function releaseLostActivities(deps: Deps): Promise<number> {
  const lost = [...deps.attempts.unattended()]
  await atOnce(lost, AT_ONCE, async (turnId) => {
    const isLost = async (process: number) => process === deps.attempts.process && deps.attempts.isUnattended(turnId)
    await deps.workflows.releaseActivities(toId('turn', turnId), isLost, 'reason')
  })
  return lost.length
}
