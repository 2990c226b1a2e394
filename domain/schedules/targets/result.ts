/** Answer of a server to the request of an execution: its status, and the beginning of the body as text. */
export type HttpAnswer = { httpStatus: number; answer: string }

/**
 * Result of a target's run. `waits`: a turn was started, whose end ends the execution. A failure is retried under the
 * schedule's retry policy if it `isTemporary`; a permanent failure that `disables` also disables the schedule.
 */
export type TargetResult =
  | { outcome: 'completed'; answered?: HttpAnswer }
  | { outcome: 'waits' }
  | { outcome: 'failed'; error: string; isTemporary: boolean; disables?: boolean; answered?: HttpAnswer }
