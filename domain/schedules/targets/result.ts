/** What a server answered to the request of an execution: its status, and the beginning of the body as text. */
export type HttpAnswer = { httpStatus: number; answer: string }

/**
 * How a target has run. `waits`: a turn was started, with whose end the execution ends. A failure is repeated under the
 * schedule's retry policy if it `isTemporary`; one that `disables` is there to stay.
 */
export type TargetResult =
  | { outcome: 'completed'; answered?: HttpAnswer }
  | { outcome: 'waits' }
  | { outcome: 'failed'; error: string; isTemporary: boolean; disables?: boolean; answered?: HttpAnswer }
