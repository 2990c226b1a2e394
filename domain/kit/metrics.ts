/** What an event that was recorded tells about the service. */
export type ObservedEvent = { type: string; ts: string; data: object }

/** Values that are read whenever the metrics are. */
export type Gauge = 'streams' | 'postgres_total' | 'postgres_idle' | 'postgres_waiting'

/** Measurements of a process for its operators. They never say whose organization, session or agent it was. */
export type Metrics = {
  /** Counts what recorded events of one append say: turns, model calls, tools. */
  recorded(events: readonly ObservedEvent[]): void
  /** Measures the way of an entry through Redis, in ms by the clocks of both machines. */
  relayed(lagMs: number): void
  /** Counts a sweep, and what it found if it counts that. */
  swept(sweep: string, found: number | undefined): void
  sweepFailed(sweep: string): void
  watch(gauge: Gauge, read: () => number): void
}
