import { offsetAt } from './wall-clock.ts'

/** Instant at which a zone's clocks change, with the offsets from UTC before and after. All in ms. */
export type ClockChange = { at: number; before: number; after: number }

const MINUTE_MS = 60_000
/** Less than the shortest time between two changes of a zone's clocks, which was Morocco's Ramadan. */
const PROBE_MS = 10 * 24 * 60 * MINUTE_MS
const YEARS_BACK = 1
const YEARS_AHEAD = 20
const MAX_KNOWN = 1000

const known = new Map<string, { year: number; changes: ClockChange[] }>()

/** Returns the changes of a zone's clocks from the start of the past year on, for 20 years. */
export function clockChangesOf(timezone: string, now: Date): ClockChange[] {
  const year = now.getUTCFullYear()
  const found = known.get(timezone)
  if (found?.year === year) return found.changes
  const changes = findChanges(timezone, Date.UTC(year - YEARS_BACK), Date.UTC(year + YEARS_AHEAD + 1))
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(timezone, { year, changes })
  return changes
}

function findChanges(timezone: string, since: number, until: number): ClockChange[] {
  const changes: ClockChange[] = []
  let before = offsetAt(timezone, since)
  for (let at = since + PROBE_MS; at < until; at += PROBE_MS) {
    const after = offsetAt(timezone, at)
    if (after !== before) changes.push({ at: findInstant(timezone, at - PROBE_MS, at, before), before, after })
    before = after
  }
  return changes
}

/** Returns the instant between two others at which the offset is no longer `before`. Offsets change on the minute. */
function findInstant(timezone: string, since: number, until: number, before: number): number {
  let [low, high] = [since / MINUTE_MS, until / MINUTE_MS]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(timezone, middle * MINUTE_MS) === before) low = middle
    else high = middle
  }
  return high * MINUTE_MS
}
