/**
 * Schedule as returned by the tools of its session. `at` and `next_run` are ISO 8601; `cron` is in `timezone`.
 * `next_run` is null if the schedule is over or disabled, or if it is unknown.
 */
export type SessionSchedule = {
  name: string
  /** Beginning of the message. */
  message: string
  timezone: string
  enabled: boolean
  next_run: string | null
} & ({ cron: string } | { at: string })

/** Message to be posted in the session: by a cron expression, or once. A time without offset is in `timezone`. */
export type NewSessionSchedule = { name: string; message: string; timezone: string } & (
  | { cron: string }
  | { at: string }
)

/** Schedules created by a session's tool calls. Administrators' schedules are neither listed nor deleted. */
export type SessionSchedules = {
  /** Throws `invalid`, and `conflict` for a taken name and beyond a quota. */
  create(wanted: NewSessionSchedule): Promise<SessionSchedule>
  /** Lists all, by name: a session has at most 50. */
  list(): Promise<SessionSchedule[]>
  /** Returns whether it existed. */
  delete(name: string): Promise<{ deleted: boolean }>
}
