/**
 * How a target has run. `waits`: a turn was started, with whose end the execution ends. A failure is repeated under the
 * schedule's retry policy if it `isTemporary`; one that `disables` is there to stay.
 */
export type TargetResult =
  | { outcome: 'completed' }
  | { outcome: 'waits' }
  | { outcome: 'failed'; error: string; isTemporary: boolean; disables?: boolean }
