import type { z } from 'zod'
import { check } from '../../contract/kit/sentences.ts'
import { RequestError } from './errors.ts'

/**
 * Parses a value with a schema. Throws RequestError 400 that names the invalid fields, or `where` for the value as a
 * whole.
 */
export function parse<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const checked = check(schema, value, where || 'The request body')
  if (checked.problem !== undefined) throw new RequestError(400, checked.problem)
  return checked.data
}
