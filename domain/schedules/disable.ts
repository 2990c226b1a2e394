import type { Schedule } from '../../prisma/generated/client.ts'
import { syncClock } from './clock/sync.ts'
import type { Deps } from './deps.ts'

/** Disables an enabled schedule whose target cannot be used. Temporal shows `reason`. */
export async function disableSchedule(deps: Deps, { id, revision }: Schedule, reason: string): Promise<void> {
  // A schedule that was changed meanwhile may have another target.
  const { count } = await deps.db.schedule.updateMany({
    where: { id, revision, enabled: true },
    data: {
      enabled: false,
      disabledReason: reason,
      revision: { increment: 1 },
      clockDueAt: new Date(),
      nextTimes: [],
      nextTimesSince: null,
      updatedAt: new Date(),
    },
  })
  if (count > 0) await syncClock(deps, id)
}
