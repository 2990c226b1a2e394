import type { CronFields } from '../cron/fields.ts'

/** Settings of a Temporal Schedule. Ids and times only: the target stays in the record. */
export type ClockSettings = {
  scheduleId: string
  organizationId: string
  /** Session that the schedule targets; only labels its workflows. */
  sessionId: string | null
  /** Counts the changes of a schedule. Each run has the revision under which it was due. */
  revision: number
  fields: CronFields
  timezone: string
  /** Reason for the pause. Null while the schedule is not paused. */
  pausedBecause: string | null
}

/**
 * Times in order, complete from `since` (exclusive) to the last. If there are none, no time follows. `changedAt`: when
 * Temporal last learned of a change, by Temporal's clock. It does not start earlier runs.
 */
export type NextTimes = { since: Date; times: Date[]; changedAt: Date }

/**
 * Clock of the schedules: one Temporal Schedule each, which starts the workflow `launch` for each due run. Ids are
 * plain UUIDs. Each call has a time limit, can be repeated, and rejects when Temporal is away.
 */
export type Clock = {
  /**
   * Creates or updates the Temporal Schedule. If Temporal has a later revision that differs, leaves it and returns its
   * number.
   */
  keep(settings: ClockSettings): Promise<number | undefined>
  /** Deletes it, if it exists. */
  remove(scheduleId: string): Promise<void>
  /** Returns the next times, up to ten. Undefined if the schedule is paused or missing. */
  nextTimes(scheduleId: string): Promise<NextTimes | undefined>
  /** Returns the latest `most` times after `after` and up to `until`, in order. */
  timesBetween(scheduleId: string, after: Date, until: Date, most: number): Promise<Date[]>
}
