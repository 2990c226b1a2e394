/**
 * Schedule as the tools of its session answer it. `at` and `next_run` are ISO 8601; `cron` is in `timezone`. `next_run`
 * is null when it is over, disabled, or not known yet.
 */
export type SessionSchedule = {
  name: string
  /** Beginning of the message. */
  message: string
  timezone: string
  enabled: boolean
  next_run: string | null
} & ({ cron: string } | { at: string })

/** Message to be posted in the session: by a cron expression, or once. A time without offset is one of `timezone`. */
export type NewSessionSchedule = { name: string; message: string; timezone: string } & (
  | { cron: string }
  | { at: string }
)

/** The schedules that tool calls have made in a session. Administrators' are neither listed nor deleted. */
export type SessionSchedules = {
  /** Throws `invalid`, and `conflict` for a name that is taken and beyond a quota. */
  create(wanted: NewSessionSchedule): Promise<SessionSchedule>
  /** Lists all, by name: a session has at most 50. */
  list(): Promise<SessionSchedule[]>
  /** Returns whether there was one. */
  delete(name: string): Promise<{ deleted: boolean }>
}
