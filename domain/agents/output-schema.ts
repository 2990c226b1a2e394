import { Prisma } from '../../prisma/generated/client.ts'
import type { Actor } from '../kit/actor.ts'
import { invalid, tooMany } from '../kit/errors.ts'
import { checkSchemas } from '../tools/capabilities/arguments/check.ts'
import { checkOutput } from '../tools/capabilities/arguments/output.ts'
import { ENDLESS } from '../tools/capabilities/arguments/schema-problems.ts'
import type { Deps } from './deps.ts'

type Schema = Record<string, unknown>

/** Returns an output schema for Prisma, whose JSON input type does not accept `unknown`. The contract has parsed it. */
export const writableSchema = (schema: Schema | null | undefined): Prisma.InputJsonValue | typeof Prisma.DbNull =>
  (givenSchema(schema) as Prisma.InputJsonObject | undefined) ?? Prisma.DbNull

/** Returns an output schema as it is stored or used: `{}` stands for none. */
export const givenSchema = (schema: Schema | null | undefined): Schema | undefined =>
  schema == null || Object.keys(schema).length === 0 ? undefined : schema

/**
 * Throws `invalid` for an output schema that is not the JSON Schema of an object, that refers to itself without an end,
 * or that takes too long to check, and `too_many` when the service is busy.
 */
export async function checkOutputSchema(
  deps: Pick<Deps, 'owners' | 'threads'>,
  { organizationId }: Pick<Actor, 'organizationId'>,
  given: Schema | null | undefined,
): Promise<void> {
  const schema = givenSchema(given)
  if (schema === undefined) return
  const owner = await deps.owners.ownerOf(organizationId)
  const [problem] = await checkSchemas(deps.threads.schemas, [schema], owner)
  if (problem !== undefined) throw invalid(`output_schema: ${problem}`)
  const ofNothing = await checkOutput(deps.threads.schemas, schema, '{}', { owner })
  if (ofNothing === 'busy') throw tooMany('The output_schema cannot be checked at the moment', 5)
  if (ofNothing === ENDLESS) throw invalid('output_schema: refers to itself without an end')
}
