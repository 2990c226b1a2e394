import { z } from 'zod'
import { textUpTo } from './common.ts'

/** Largest offset. It fits into Postgres's 64-bit row counts and into a number. */
const MAX_NUMBER = 999_999_999_999_999

/** Number of any length, clamped to the largest offset. */
export const wholeNumber = z
  .string()
  .regex(/^\d+$/, { error: 'must be a whole number, zero or more' })
  .transform((digits) => Math.min(Number(digits), MAX_NUMBER))

/** Returns the schema of a page's size of at least 1. A size above the limit is clamped, never refused. */
export const clamped = (most: number) =>
  z
    .string()
    .regex(/^0*[1-9]\d*$/, { error: 'must be a whole number, 1 or more' })
    .transform((digits) => Math.min(Number(digits), most))
    .optional()

/** Returns the schema of a page's size that has a default. */
export const limitUpTo = (most: number, fallback: number) =>
  clamped(most)
    .transform((limit) => limit ?? fallback)
    .meta({
      type: 'integer',
      minimum: 1,
      default: fallback,
      description: `At most ${most}; larger values are clamped.`,
    })

/** Number of items to skip. */
export const offset = wholeNumber
  .optional()
  .transform((value) => value ?? 0)
  .meta({ type: 'integer', minimum: 0, default: 0 })

export const pagination = { limit: limitUpTo(100, 20), offset }

/** Returns the schema of a key that may be repeated: several values arrive as a list, a single one as a string. */
export const repeated = <T extends z.ZodType<unknown, string>>(item: T, most: number) =>
  z
    .union([z.array(z.string()), z.string().transform((one) => [one])])
    .pipe(z.array(item).max(most, { error: `must be given at most ${most} times` }))
    .optional()

const truth = z.enum(['true', 'false', '1', '0'], { error: 'must be true or false' })
const isTrue = (value: string): boolean => value === 'true' || value === '1'

/** Flag of a query: `true`, or `1`. */
export const flag = truth.default('false').transform(isTrue)

/** Filter of a query by a flag. Absent: both. */
export const choice = truth.transform(isTrue).optional().meta({ type: 'boolean' })

const FIRST_MS = 0
const LAST_MS = Date.UTC(9999, 11, 31)

/** Point in time of a filter, with any offset from UTC. */
export const time = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2030-01-31T09:00:00Z' })
  .transform((text) => new Date(text))
  .refine((at) => at.getTime() >= FIRST_MS && at.getTime() <= LAST_MS, { error: 'must be between 1970 and 9999' })

/** Words that a text must have, in the way of search engines. */
export const search = textUpTo(256).meta({
  description:
    'Words that the text must have, in any order. "two words" follow each other, or allows either side, -word excludes.',
})
