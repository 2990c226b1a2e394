import type { z } from 'zod'
import { RequestError } from './errors.ts'

/**
 * Parses a value with a schema. Throws RequestError 400 that names the invalid fields, or `where` for the value as a
 * whole.
 */
export function parse<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new RequestError(
    400,
    parsed.error.issues
      .slice(0, 5)
      .map((issue) => sentence(issue, where))
      .join('; '),
  )
}

function sentence(issue: z.core.$ZodIssue, where: string): string {
  const nested = reasonOf(issue)
  const path = [...issue.path, ...(nested?.path ?? [])].join('.')
  const field = path === '' ? where || 'The request body' : path
  return `${field}: ${lowerFirst(nested?.message ?? issue.message)}`
}

/** Returns the issue that says more than "invalid": of a union's first member, or of a record's key. */
function reasonOf(issue: z.core.$ZodIssue): z.core.$ZodIssue | undefined {
  if (issue.code === 'invalid_union') return issue.errors.flat().at(0)
  return issue.code === 'invalid_key' ? issue.issues.at(0) : undefined
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)
