import type { Context } from '@temporalio/activity'
import type { ActivityInterceptors } from '@temporalio/worker'
import type { OwnActivities } from '../domain/turns/sweep/lost-activities.ts'

/** Time after which what Temporal gave away during a silence has come back by its heartbeat timeout. */
const MISSED_MS = 12_000
/** Time that an activity may be on its way here. */
const ARRIVES_MS = 1000

/** What this process knows of the activities that Temporal believes to run in it, because it sees all that do. */
export type WatchedActivities = OwnActivities & {
  /** Registers each activity of a worker as long as it runs. */
  interceptors: { activity: ((context: Context) => ActivityInterceptors)[] }
  /** Says that Temporal has not answered: it may have given activities to polls that were cut off. */
  noteSilence(): void
}

export function watchActivities(): WatchedActivities {
  const running = new Set<string>()
  /** Times at which activities were first missed. */
  const missed = new Map<string, number>()
  let silentAt = Number.NEGATIVE_INFINITY
  const watch = ({ info: { workflowExecution, activityId, attempt } }: Context): ActivityInterceptors => ({
    inbound: {
      execute: async (input, next) => {
        const activity = `${workflowExecution?.workflowId}/${activityId}/${attempt}`
        running.add(activity)
        missed.delete(activity)
        try {
          return await next(input)
        } finally {
          running.delete(activity)
        }
      },
    },
  })
  return {
    interceptors: { activity: [watch] },
    noteSilence: () => {
      silentAt = performance.now()
      missed.clear()
    },
    mayBeLost: () => performance.now() - silentAt < MISSED_MS,
    isLost: (activity) => {
      if (running.has(activity)) return false
      const now = performance.now()
      const since = missed.get(activity) ?? now
      missed.set(activity, since)
      return now - since > ARRIVES_MS
    },
  }
}
