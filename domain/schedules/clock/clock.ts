import type { CronFields } from '../cron/fields.ts'

/** Settings of a Temporal Schedule. Ids and times only: the target stays in the record. */
export type ClockSettings = {
  scheduleId: string
  organizationId: string
  /** Session that the schedule targets; only labels its workflows. */
  sessionId: string | null
  /** Counts the changes of a schedule; runs say under which one they were due. */
  revision: number
  fields: CronFields
  timezone: string
  /** Why the schedule is paused. Null while it is not. */
  pausedBecause: string | null
}

/**
 * Times in order. There are no others between `since` (exclusive) and the last one, and none at all when there are none.
 * `changedAt`: when Temporal was told of the schedule last, by Temporal's clock. It starts nothing that was due before.
 */
export type NextTimes = { since: Date; times: Date[]; changedAt: Date }

/**
 * The clock of the schedules: a Temporal Schedule each, which starts the workflow `launch` when a run is due. Ids are
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
  /** Returns up to ten times from now on. Undefined while it is paused, or does not exist. */
  nextTimes(scheduleId: string): Promise<NextTimes | undefined>
  /** Returns the times after `after` and up to `until`, in order: the latest `most` of them. */
  timesBetween(scheduleId: string, after: Date, until: Date, most: number): Promise<Date[]>
}
