import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import { flattenSchema, SchemaProblem, WORK } from './flatten-schema.ts'
import { BudgetSpent, createWorkBudget, type WorkBudget } from './work-budget.ts'

/** Schemas and arguments are a tenant's and a model's: neither may take time, memory or the process. */

const MAX_PROBLEMS = 5
/** Ajv may find a hundred thousand, most of them alike. */
const MAX_ERRORS_READ = 100
const MAX_PROBLEM_LENGTH = 300
/** To find all problems is worth less work than to find out whether there is one. */
const LISTING_BUDGET = 20_000

type Arguments = Record<string, unknown>
type Schema = Record<string, unknown>

/** Why `schema` cannot be a tool's parameters, as a sentence that follows its name; undefined when it can. */
export function checkSchema(schema: Schema): string | undefined {
  try {
    checkForm(schema)
    // Compiling the schema itself is left to its first use: fifty large ones would take seconds.
    const budget = createWorkBudget()
    for (const pattern of flattenSchema(schema).patterns) budget.compilePattern(pattern)
    return undefined
  } catch (error) {
    return schemaProblem(error)
  }
}

/** What is wrong with a call's arguments, in a sentence for the model that names the fields; undefined when nothing is. */
export function checkArguments(schema: Schema, args: Arguments): string | undefined {
  try {
    return checkerOf(schema)(args)
  } catch (error) {
    if (error instanceof BudgetSpent || error instanceof RangeError) {
      return 'The arguments are too large or too deeply nested to be checked; pass smaller ones.'
    }
    return `The tool cannot be called, its parameters are wrong: ${schemaProblem(error)}.`
  }
}

type Checker = (args: Arguments) => string | undefined

const checkers = new WeakMap<Schema, Checker>()

/** Kept as long as the schema itself: the service's own are compiled once, a tenant's with each load. */
function checkerOf(schema: Schema): Checker {
  const known = checkers.get(schema)
  if (known !== undefined) return known
  const checker = createChecker(schema)
  checkers.set(schema, checker)
  return checker
}

function createChecker(schema: Schema): Checker {
  checkForm(schema)
  const budget = createWorkBudget()
  const validate = compile(schema, budget, 'first')
  return (args) => {
    budget.refill()
    if (validate(args)) return undefined
    return sentence(listProblems(schema, args) ?? validate.errors ?? [])
  }
}

/** Undefined when it takes too long: then the first problem has to do. */
function listProblems(schema: Schema, args: Arguments): ErrorObject[] | undefined {
  const budget = createWorkBudget()
  const validate = compile(schema, budget, 'all')
  budget.refill(LISTING_BUDGET)
  try {
    validate(args)
    return validate.errors ?? undefined
  } catch (error) {
    if (error instanceof BudgetSpent || error instanceof RangeError) return undefined
    throw error
  }
}

/** An Ajv of its own for each schema, so that nothing of one tenant's can be seen by another's. */
function compile(schema: Schema, budget: WorkBudget, problems: 'first' | 'all'): ValidateFunction {
  const regExp = Object.assign((pattern: string) => budget.compilePattern(pattern), { code: 'compilePattern' })
  const ajv = new Ajv2020({
    allErrors: problems === 'all',
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    inlineRefs: false,
    strict: false,
    logger: false,
    ownProperties: true,
    multipleOfPrecision: 9,
    code: { regExp },
  })
  ajv.addKeyword({
    keyword: WORK,
    schemaType: 'number',
    before: '$ref',
    errors: false,
    validate: (work: number, data: unknown) => {
      budget.spend(work, data)
      return true
    },
  })
  return ajv.compile(flattenSchema(schema).schema)
}

const META_SCHEMA = 'https://json-schema.org/draft/2020-12/schema'
let metaSchema: ValidateFunction | undefined

/** Throws SchemaProblem for what is no JSON Schema or not one of an object. */
function checkForm(schema: Schema): void {
  if (schema.type !== undefined && schema.type !== 'object') throw new SchemaProblem('type must be "object" at the top')
  metaSchema ??= new Ajv2020({ validateFormats: false, strict: false, logger: false }).getSchema(META_SCHEMA)
  const { $schema, $id, ...rest } = schema
  if (metaSchema?.(rest)) return
  throw new SchemaProblem(`it is no JSON Schema (2020-12): ${listText(metaSchema?.errors ?? [])}`)
}

function schemaProblem(error: unknown): string {
  if (error instanceof SchemaProblem) return error.message
  if (error instanceof RangeError) return 'it is nested too deeply'
  const message = error instanceof Error ? error.message : String(error)
  return `it is no JSON Schema (2020-12): ${message.slice(0, MAX_PROBLEM_LENGTH)}`
}

const sentence = (errors: ErrorObject[]): string => `The arguments are not what the tool takes: ${listText(errors)}.`

function listText(errors: ErrorObject[]): string {
  const read = errors.slice(0, MAX_ERRORS_READ).map((error) => describe(error).slice(0, MAX_PROBLEM_LENGTH))
  const problems = [...new Set(read)]
  const listed = problems.slice(0, MAX_PROBLEMS).join('; ')
  return problems.length > MAX_PROBLEMS || errors.length > MAX_ERRORS_READ ? `${listed}; and more` : listed
}

function describe(error: ErrorObject): string {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues, allowedValue } = error.params
  const unwanted = additionalProperty ?? unevaluatedProperty
  const at = (...more: unknown[]) => shorten([...path, ...more].join('.') || 'the whole')
  if (error.keyword === 'required') return `${at(missingProperty)} is required`
  if (unwanted !== undefined) return `${at(unwanted)} is not one of the fields`
  if (error.keyword === 'enum') return `${at()} must be one of ${JSON.stringify(allowedValues)}`
  if (error.keyword === 'const') return `${at()} must be ${JSON.stringify(allowedValue)}`
  return `${at()} ${error.message ?? 'is wrong'}`
}

/** A path may be as long as the arguments; its end says more than its beginning. */
const shorten = (path: string): string => (path.length <= 150 ? path : `…${path.slice(-150)}`)
