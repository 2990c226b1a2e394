import type { ClockChange } from './clock-changes.ts'
import type { CronFields } from './fields.ts'
import { matches, matchesDay } from './matches.ts'

/** Hours and minutes of runs on a day of some years. */
export type DayOfChange = { month: number; day: number; hours: number[]; minutes: number[]; years: number[] }

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/**
 * Returns the runs of times that clocks skip when they are put forward: later by the length of the gap. Also the days
 * that begin in such a gap, for which Temporal has a wrong day of the week. Years with the same day share an entry.
 */
export function findSkipped(fields: CronFields, changes: ClockChange[]): DayOfChange[] {
  const days = new Map<string, DayOfChange>()
  const add = (at: Date, hours: number[], minutes: number[]) => {
    const [month, day] = [at.getUTCMonth() + 1, at.getUTCDate()]
    const key = JSON.stringify([month, day, hours, minutes])
    const known = days.get(key) ?? { month, day, hours, minutes, years: [] }
    known.years.push(at.getUTCFullYear())
    days.set(key, known)
  }
  for (const { at, before, after } of changes) {
    const [from, to] = [at + before, at + after]
    const midnight = new Date(Math.ceil(from / DAY_MS) * DAY_MS)
    if (fields.daysOfWeek !== null && midnight.getTime() < to && matchesDay(fields, midnight)) {
      add(midnight, fields.hours ?? Array.from({ length: 24 }, (_, hour) => hour), fields.minutes)
    }
    if (fields.hours === null) continue
    for (const [hour, minutes] of shiftedMinutes(fields, from, to)) {
      const start = new Date(hour)
      add(start, [start.getUTCHours()], minutes)
    }
  }
  return [...days.values()]
}

/** Returns the shifted minutes of the times in a gap, by the start of their hour, without minutes that match anyway. */
function shiftedMinutes(fields: CronFields, from: number, to: number): Map<number, number[]> {
  const hours = new Map<number, number[]>()
  const inSecond = (fields.seconds[0] ?? 0) * 1000
  for (let wall = from; wall < to; wall += MINUTE_MS) {
    const shifted = wall + to - from
    if (!matches(fields, new Date(wall + inSecond)) || matches(fields, new Date(shifted + inSecond))) continue
    const hour = Math.floor(shifted / HOUR_MS) * HOUR_MS
    hours.set(hour, [...(hours.get(hour) ?? []), (shifted - hour) / MINUTE_MS])
  }
  return hours
}
