import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { serveJobs } from '../../../../lib/threads/worker.ts'
import {
  AJV_OPTIONS,
  argumentsProblem,
  ENDLESS,
  listProblems,
  MAX_PROBLEM_LENGTH,
  TOO_LARGE,
} from './schema-problems.ts'

/**
 * Entry point of a schema thread. Reads untrusted schemas, or calls with such schemas, and yields the problem of each.
 */

export type Schema = Record<string, unknown>
/** A call to check; `args` is JSON text. */
export type SentCall = { schema: Schema; args: string; secret?: string[] | undefined }
/** An answer to check; `value` is JSON text. */
export type SentOutput = { schema: Schema; value: string }
export type SchemaJob = { schemas: Schema[] } | { calls: SentCall[] } | { outputs: SentOutput[] }

const metaSchema = new Ajv2020(AJV_OPTIONS).getSchema('https://json-schema.org/draft/2020-12/schema')

serveJobs<SchemaJob, string | undefined>((job) => {
  if ('schemas' in job) return checkSchemas(job.schemas)
  return 'calls' in job ? checkCalls(job.calls) : checkOutputs(job.outputs)
})

function* checkSchemas(schemas: Schema[]): Iterable<string | undefined> {
  for (const schema of schemas) {
    const checked = compile(schema)
    yield typeof checked === 'string' ? checked : undefined
  }
}

function* checkCalls(calls: SentCall[]): Iterable<string | undefined> {
  // Calls of one tool share one schema object.
  const compiled = new Map<Schema, ValidateFunction | string>()
  for (const { schema, args, secret } of calls) {
    const validate = compiled.get(schema) ?? compile(schema)
    compiled.set(schema, validate)
    yield typeof validate === 'string'
      ? `The tool cannot be called, its parameters are wrong: ${validate}.`
      : check(validate, JSON.parse(args), secret)
  }
}

function* checkOutputs(outputs: SentOutput[]): Iterable<string | undefined> {
  for (const { schema, value } of outputs) {
    const validate = compile(schema)
    yield typeof validate === 'string' ? `Its schema is wrong: ${validate}.` : checkOutput(validate, JSON.parse(value))
  }
}

function checkOutput(validate: ValidateFunction, value: unknown): string | undefined {
  try {
    return validate(value) ? undefined : `It does not fit its schema: ${listProblems(validate.errors ?? [])}.`
  } catch (error) {
    if (error instanceof RangeError) return ENDLESS
    throw error
  }
}

function check(validate: ValidateFunction, args: unknown, secret?: string[]): string | undefined {
  try {
    return validate(args) ? undefined : argumentsProblem(validate.errors ?? [], secret)
  } catch (error) {
    if (error instanceof RangeError) return TOO_LARGE
    throw error
  }
}

/**
 * Compiles a schema, or returns its problem. Each schema gets its own Ajv, so that no name refers to another schema.
 */
function compile({ $schema, $id, $async, ...schema }: Schema): ValidateFunction | string {
  if (schema.type !== undefined && schema.type !== 'object') return 'type must be "object" at the top'
  try {
    if (!metaSchema?.(schema)) return `must be a JSON Schema (2020-12): ${listProblems(metaSchema?.errors ?? [])}`
    const ajv = new Ajv2020({
      ...AJV_OPTIONS,
      meta: false,
      validateSchema: false,
      // Both would take more time than they save.
      inlineRefs: false,
      code: { optimize: false },
    })
    // Ajv throws at `id`, draft 4's name for $id.
    ajv.removeKeyword('id')
    return ajv.compile(schema)
  } catch (error) {
    return compileProblem(error)
  }
}

function compileProblem(error: unknown): string {
  if (error instanceof RangeError) return 'it is nested too deeply'
  if (error instanceof Ajv2020.MissingRefError) {
    const ref = JSON.stringify(error.missingRef).slice(0, MAX_PROBLEM_LENGTH)
    if (error.missingRef.startsWith('#')) return `there is no schema at the $ref ${ref}`
    return `the $ref ${ref} is not followed; only references into the schema itself are`
  }
  const message = error instanceof Error ? error.message : String(error)
  return `must be a JSON Schema (2020-12): ${message.slice(0, MAX_PROBLEM_LENGTH)}`
}
