import { atOnce } from '../../../lib/at-once.ts'
import { sleep } from '../../../lib/sleep.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import type { Schedule } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'

const ASKED_AT_ONCE = 8
const PATIENCE_MS = 2000

type Row = Pick<Schedule, 'id' | 'enabled' | 'deletedAt' | 'revision' | 'clockDueAt' | 'nextTimes' | 'nextTimesSince'>

/**
 * Returns the next times of each schedule, by id: from the record, or from Temporal once the recorded times have
 * passed. Empty for a disabled schedule, or when Temporal does not answer in time. Never rejects.
 */
export async function readNextTimes(deps: Deps, rows: Row[]): Promise<Map<string, Date[]>> {
  const next = new Map(rows.map((row) => [row.id, row.enabled ? afterNow(row.nextTimes) : []]))
  const passed = rows.filter((row) => next.get(row.id)?.length === 0 && mayHaveMore(row))
  if (passed.length === 0) return next
  const over = new AbortController()
  const asking = atOnce(
    passed,
    ASKED_AT_ONCE,
    async (row) => {
      const times = await askAgain(deps, row)
      if (!over.signal.aborted) next.set(row.id, times)
    },
    () => over.signal.aborted,
  )
  await Promise.race([asking, sleep(PATIENCE_MS, over.signal)])
  over.abort()
  return next
}

const afterNow = (times: Date[]): Date[] => times.filter((time) => time.getTime() > Date.now())

/** Whether Temporal knows of the schedule and may have further times. */
const mayHaveMore = ({ enabled, deletedAt, clockDueAt, nextTimes, nextTimesSince }: Row): boolean =>
  enabled && deletedAt === null && clockDueAt === null && (nextTimes.length > 0 || nextTimesSince === null)

/** Asks Temporal and stores its answer. If Temporal has lost or paused the schedule, the sweeper tells it again. */
async function askAgain({ clock, db, log }: Deps, { id, revision }: Row): Promise<Date[]> {
  try {
    const next = await clock.nextTimes(id)
    const data = next === undefined ? { clockDueAt: new Date() } : { nextTimes: next.times, nextTimesSince: next.since }
    await db.schedule.updateMany({ where: { id, revision, clockDueAt: null }, data })
    return afterNow(next?.times ?? [])
  } catch (error) {
    warnRarely(log, { scheduleId: id, err: (error as Error).message }, 'Temporal did not say when a schedule runs next')
    return []
  }
}
