/** Source of times. Lists the first 1000 after `from` and up to `to`; `isRun` may reject some. */
type Source = { list(from: Date, to: Date): Promise<Date[]>; isRun(time: Date): boolean }

/** Number of times that Temporal lists at once. */
const FULL = 1000
/** Times are at least 10 s apart, so this is never full. */
const MIN_SPAN_MS = 9_000_000
const MAX_CALLS = 50
const FACTOR = 4

/**
 * Returns the latest `most` times after `after` and up to `until`, in order. Walks backwards in spans that grow while few
 * times are in them. When there are so many that it would take more than 50 calls, returns the latest 40,000 or so.
 */
export async function latestTimes(
  { after, until, most }: { after: Date; until: Date; most: number },
  { list, isRun }: Source,
): Promise<Date[]> {
  const found: Date[][] = []
  let count = 0
  let end = until.getTime()
  let span = end - after.getTime()
  for (let calls = 0; calls < MAX_CALLS && end > after.getTime() && count < most; calls++) {
    const start = Math.max(after.getTime(), end - span)
    const times = await list(new Date(start), new Date(end))
    if (times.length >= FULL && span > MIN_SPAN_MS) {
      span = Math.max(MIN_SPAN_MS, span / FACTOR)
      continue
    }
    const runs = times.filter(isRun)
    found.unshift(runs)
    count += runs.length
    end = start
    if (times.length < FULL / FACTOR) span *= FACTOR
  }
  return most > 0 ? found.flat().slice(-most) : []
}
