import type { z } from 'zod'
import { describeIssues } from '../../contract/sentences.ts'
import { RequestError } from './errors.ts'

/**
 * Parses a value with a schema. Throws RequestError 400 that names the invalid fields, or `where` for the value as a
 * whole.
 */
export function parse<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new RequestError(400, describeIssues(parsed.error, where || 'The request body'))
}
