/**
 * A cron expression: the numbers that each field matches, in ascending order. Null matches all; days of the week are 0
 * (Sunday) to 6. If both day fields are set, either may match.
 */
export type CronFields = {
  seconds: number[]
  minutes: number[]
  hours: number[] | null
  daysOfMonth: number[] | null
  months: number[] | null
  daysOfWeek: number[] | null
  years: number[] | null
}
