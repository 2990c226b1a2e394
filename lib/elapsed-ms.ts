/** Whole milliseconds since a time of `performance.now()`, which, unlike `Date.now()`, no clock that is set changes. */
export const elapsedMs = (since: number): number => Math.round(performance.now() - since)
