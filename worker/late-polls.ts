/** Line of Temporal's library about a poll that has failed six times in a row. It is asked again only after 6 to 10 s. */
const LATE = /^gRPC call poll_\w+ retried \d+ times/
/** Failure by which Temporal asks for fewer polls. */
const THROTTLED = /\bResourceExhausted\b/

/** Notices that polls are made anew late, although Temporal may be back: the library doubles its pause after each failure. */
export type LatePolls = {
  /** Takes a line of the library's log, and the failure that it reports. */
  read(message: string, failure: unknown): void
  /** Resolves with the next such line. */
  late(): Promise<void>
}

export function watchLatePolls(): LatePolls {
  let next = Promise.withResolvers<void>()
  return {
    read: (message, failure) => {
      if (!LATE.test(message) || THROTTLED.test(String(failure))) return
      next.resolve()
      next = Promise.withResolvers()
    },
    late: () => next.promise,
  }
}
