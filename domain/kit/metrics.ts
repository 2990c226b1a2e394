/** What an event that was recorded tells about the service. */
export type ObservedEvent = { type: string; ts: string; data: object }

/** Reason of an attempt at a reason step: after a failed model call, or after an attempt that died. */
export type AttemptReason = 'first' | 'retry' | 'taken_over'

/** Values that are read whenever the metrics are. */
export type Gauge = 'streams' | 'postgres_total' | 'postgres_idle' | 'postgres_waiting'

/** Measurements of a process for its operators. They never say whose organization, session or agent it was. */
export type Metrics = {
  /** Counts what recorded events of one append say: turns, model calls, tools. */
  recorded(events: readonly ObservedEvent[]): void
  attempted(reason: AttemptReason): void
  /** Counts a model call that failed and is made again. `provider` is its kind. */
  retried(provider: string): void
  /** Counts events passed on to a stream. Measures how late they are, unless the stream is only catching up. */
  sent(events: readonly { id: string }[], how: 'live' | 'replayed'): void
  /** Measures the way of an entry through Redis, in ms by the clocks of both machines. */
  relayed(lagMs: number): void
  /** Counts a sweep, and the number of items that it found. */
  swept(sweep: string, found: number): void
  sweepFailed(sweep: string): void
  watch(gauge: Gauge, read: () => number): void
}
