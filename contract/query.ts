import { z } from 'zod'

const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, { error: 'must be a whole number, zero or more' })
  .transform(Number)

/** Decided: too large a limit is clamped, never refused. */
export const limitUpTo = (most: number, fallback: number) =>
  wholeNumber
    .transform((limit) => Math.min(limit, most))
    .optional()
    .transform((limit) => limit ?? fallback)
    .meta({
      type: 'integer',
      minimum: 0,
      default: fallback,
      description: `At most ${most}; a larger one is taken as ${most}.`,
    })

/** Postgres counts rows in 64 bits; a larger offset is past the end of any list just the same. */
export const offset = wholeNumber
  .optional()
  .transform((value) => value ?? 0)
  .meta({ type: 'integer', minimum: 0, default: 0 })

export const pagination = { limit: limitUpTo(100, 20), offset }

/** A repeated key arrives as a list, a single one as a string. */
export const repeated = <T extends z.ZodType<unknown, string>>(item: T, most: number) =>
  z
    .union([z.array(z.string()), z.string().transform((one) => [one])])
    .pipe(z.array(item).max(most, { error: `must be given at most ${most} times` }))
    .optional()
