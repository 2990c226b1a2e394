import type { CronFields } from './fields.ts'

/**
 * Parses a cron expression of five, six (the second first) or seven fields (the second first, the year last). Throws
 * `invalid` for one that is wrong, that never comes, or that comes more often than each 10 s.
 */
export function parseCron(_expression: string): CronFields {
  throw new Error('to be written')
}
