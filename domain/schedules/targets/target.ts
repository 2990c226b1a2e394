import type { z } from 'zod'
import { check } from '../../../contract/kit/sentences.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { invalid } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'

/** Checked input of a target. `headers` are the request's as given: a value of `***` stands for the stored one. */
export type CheckedInput = {
  input: Prisma.InputJsonObject
  headers: Record<string, string>
  /** Session that the target names. It is looked up later, when its row is locked. */
  sessionId: string | null
}

/** Checks the input of a target. Throws `invalid` with a sentence that names the field. */
export type CheckInput = (deps: Deps, actor: Actor, input: unknown) => Promise<CheckedInput>

/** Parses an input. Throws `invalid` that names the fields, as in `target.input.url`. */
export function parseInput<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const checked = check(schema, input, 'target.input', 'target.input.')
  if (checked.problem !== undefined) throw invalid(checked.problem)
  return checked.data
}
