/** Returns the value below which `share` (0 to 1) of the samples lies. */
export function percentile(samples: number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export type Turn = { firstMs: number; wholeMs: number }
export type Result = { firstP50: number; firstP99: number; wholeP50: number; wholeP99: number; perSecond: number }

export const summarize = (turns: Turn[], elapsedMs: number): Result => ({
  firstP50: percentile(
    turns.map((turn) => turn.firstMs),
    0.5,
  ),
  firstP99: percentile(
    turns.map((turn) => turn.firstMs),
    0.99,
  ),
  wholeP50: percentile(
    turns.map((turn) => turn.wholeMs),
    0.5,
  ),
  wholeP99: percentile(
    turns.map((turn) => turn.wholeMs),
    0.99,
  ),
  perSecond: (turns.length * 1000) / elapsedMs,
})

/** Runs `task` `count` times, `inFlight` at a time; a task gets the number of its lane. */
export async function runLanes(
  count: number,
  inFlight: number,
  task: (lane: number) => Promise<Turn>,
): Promise<Result> {
  const turns: Turn[] = []
  let left = count
  const startedAt = performance.now()
  const lane = async (number: number) => {
    while (left-- > 0) turns.push(await task(number))
  }
  await Promise.all(Array.from({ length: inFlight }, (_, number) => lane(number)))
  return summarize(turns, performance.now() - startedAt)
}
