import type { CronFields } from './fields.ts'

const among = (numbers: number[] | null, value: number): boolean => numbers === null || numbers.includes(value)

/** Whether a day matches. `wall` has the parts of a wall-clock time in UTC. */
export function matchesDay({ daysOfMonth, months, daysOfWeek, years }: CronFields, wall: Date): boolean {
  if (!among(years, wall.getUTCFullYear()) || !among(months, wall.getUTCMonth() + 1)) return false
  const inMonth = among(daysOfMonth, wall.getUTCDate())
  const inWeek = among(daysOfWeek, wall.getUTCDay())
  return daysOfMonth !== null && daysOfWeek !== null ? inMonth || inWeek : inMonth && inWeek
}

/** Whether a time matches. `wall` has the parts of a wall-clock time in UTC. */
export const matches = (fields: CronFields, wall: Date): boolean =>
  fields.seconds.includes(wall.getUTCSeconds()) &&
  fields.minutes.includes(wall.getUTCMinutes()) &&
  among(fields.hours, wall.getUTCHours()) &&
  matchesDay(fields, wall)
