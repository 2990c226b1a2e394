import { offsetAt } from './wall-clock.ts'

/** Time that a zone's clocks leave out, as wall-clock times in UTC. */
export type Gap = { from: number; to: number }

const MINUTE_MS = 60_000
/** Clocks are not put forward and back again within this time: Morocco's Ramadan is the shortest. */
const PROBE_MS = 10 * 24 * 60 * MINUTE_MS
const YEARS_BACK = 1
const YEARS_AHEAD = 20

const known = new Map<string, { year: number; gaps: Gap[] }>()
const MAX_KNOWN = 1000

/** Returns what a zone's clocks leave out within the next 20 years, and within the past one. */
export function gapsOf(timezone: string, now: Date): Gap[] {
  const year = now.getUTCFullYear()
  const found = known.get(timezone)
  if (found?.year === year) return found.gaps
  const gaps = findGaps(timezone, Date.UTC(year - YEARS_BACK), Date.UTC(year + YEARS_AHEAD + 1))
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(timezone, { year, gaps })
  return gaps
}

function findGaps(timezone: string, since: number, until: number): Gap[] {
  const gaps: Gap[] = []
  let before = offsetAt(timezone, since)
  for (let at = since + PROBE_MS; at < until; at += PROBE_MS) {
    const after = offsetAt(timezone, at)
    if (after > before) {
      const change = findChange(timezone, at - PROBE_MS, at, before)
      gaps.push({ from: change + before, to: change + after })
    }
    before = after
  }
  return gaps
}

/** Returns the instant between two others at which the offset is no longer `before`. Offsets change on the minute. */
function findChange(timezone: string, since: number, until: number, before: number): number {
  let [low, high] = [since / MINUTE_MS, until / MINUTE_MS]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(timezone, middle * MINUTE_MS) === before) low = middle
    else high = middle
  }
  return high * MINUTE_MS
}
