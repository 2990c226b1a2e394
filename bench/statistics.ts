/** Returns the value below which `share` (0 to 1) of the samples lies. */
export function percentile(samples: number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const median = (samples: number[]): number => percentile(samples, 0.5)

/** Times of one turn from the request that starts it, in ms. */
export type Turn = { firstMs: number; wholeMs: number }
/** Percentiles in ms, and turns a second. */
export type Times = { firstP50: number; firstP95: number; wholeP50: number; wholeP95: number; perSecond: number }

export function summarize(turns: Turn[], elapsedMs: number): Times {
  const first = turns.map((turn) => turn.firstMs)
  const whole = turns.map((turn) => turn.wholeMs)
  return {
    firstP50: median(first),
    firstP95: percentile(first, 0.95),
    wholeP50: median(whole),
    wholeP95: percentile(whole, 0.95),
    perSecond: (turns.length * 1000) / elapsedMs,
  }
}

/** Runs `task` `count` times, `inFlight` at a time; a task gets the number of its lane. */
export async function runLanes(count: number, inFlight: number, task: (lane: number) => Promise<Turn>): Promise<Times> {
  const turns: Turn[] = []
  let left = count
  const startedAt = performance.now()
  const lane = async (number: number) => {
    while (left-- > 0) turns.push(await task(number))
  }
  await Promise.all(Array.from({ length: inFlight }, (_, number) => lane(number)))
  return summarize(turns, performance.now() - startedAt)
}
