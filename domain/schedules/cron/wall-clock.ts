const MAX_FORMATS = 100
const HOUR_MS = 3_600_000
/** Upper bound of a clock change. */
const MAX_SHIFT_MS = 3 * HOUR_MS

const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(timezone: string): Intl.DateTimeFormat {
  const known = formats.get(timezone)
  if (known !== undefined) return known
  const two = '2-digit'
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: two,
    day: two,
    hour: two,
    minute: two,
    second: two,
  })
  if (formats.size >= MAX_FORMATS) formats.clear()
  formats.set(timezone, format)
  return format
}

/** Returns the offset of a time zone from UTC at an instant, both in ms. */
export function offsetAt(timezone: string, at: number): number {
  if (timezone === 'UTC') return 0
  const second = Math.floor(at / 1000) * 1000
  const parts: Record<string, number> = {}
  for (const { type, value } of formatOf(timezone).formatToParts(second)) parts[type] = Number(value)
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, parts.second) - second
}

/**
 * Returns the wall-clock time of an instant, as a date whose parts in UTC are the parts of the wall clock. `repeated`:
 * the clock shows it for the second time. `skipped`: the wall-clock time that the clock would show without a change
 * shortly before, which skipped it.
 */
export function wallClockAt(timezone: string, instant: Date): { wall: Date; repeated: boolean; skipped: Date | null } {
  const at = instant.getTime()
  const offset = offsetAt(timezone, at)
  const earlier = offsetAt(timezone, at - MAX_SHIFT_MS)
  const shift = Math.abs(offset - earlier)
  const isLately = shift > 0 && offsetAt(timezone, at - shift) === earlier
  return {
    wall: new Date(at + offset),
    repeated: isLately && offset < earlier,
    skipped: isLately && offset > earlier ? new Date(at + earlier) : null,
  }
}
