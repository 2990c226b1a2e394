import type { ErrorObject, Options } from 'ajv'

/** Options of Ajv, the same in process and in the thread. */
export const AJV_OPTIONS: Options = {
  allErrors: true,
  strict: false,
  logger: false,
  validateFormats: false,
  ownProperties: true,
  multipleOfPrecision: 9,
}

const MAX_PROBLEMS = 5
/** Maximum number of described errors. Ajv may find a hundred thousand, most of them alike. */
const MAX_ERRORS_READ = 100
export const MAX_PROBLEM_LENGTH = 300

export const TOO_LARGE = 'The arguments are too large or too deeply nested to be checked; pass smaller ones.'

/** Problem of an output that is nested too deeply, or whose schema refers to itself without an end. */
export const ENDLESS = 'It is nested too deeply for its schema.'

/** Beginning of the sentence about arguments that do not fit their schema. */
export const MISFIT = 'The arguments are not what the tool takes: '

/**
 * Describes the problems of a call's arguments, in a sentence for the model that names the fields. Quotes nothing
 * within a `secret` field.
 */
export const argumentsProblem = (errors: ErrorObject[], secret: string[] = []): string =>
  `${MISFIT}${listProblems(errors, secret)}.`

export function listProblems(errors: ErrorObject[], secret: string[] = []): string {
  const read = errors.slice(0, MAX_ERRORS_READ).map((error) => describe(error, secret).slice(0, MAX_PROBLEM_LENGTH))
  const problems = [...new Set(read)]
  const listed = problems.slice(0, MAX_PROBLEMS).join('; ')
  return problems.length > MAX_PROBLEMS || errors.length > MAX_ERRORS_READ ? `${listed}; and more` : listed
}

function describe(error: ErrorObject, secret: string[]): string {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const [field = '', ...inner] = path
  // Ajv's own message quotes only the schema.
  if (secret.includes(field))
    return `${inner.length > 0 ? 'a part of ' : ''}${shorten(field)} ${error.message ?? 'is wrong'}`
  const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues, allowedValue } = error.params
  const unwanted = additionalProperty ?? unevaluatedProperty
  const at = (...more: unknown[]) => shorten([...path, ...more].join('.') || 'the whole')
  if (error.keyword === 'required') return `${at(missingProperty)} is required`
  if (unwanted !== undefined) return `${at(unwanted)} is not one of the fields`
  if (error.keyword === 'enum') return `${at()} must be one of ${JSON.stringify(allowedValues)}`
  if (error.keyword === 'const') return `${at()} must be ${JSON.stringify(allowedValue)}`
  return `${at()} ${error.message ?? 'is wrong'}`
}

/** Shortens a path, which may be as long as the arguments, to its end, the more informative part. */
const shorten = (path: string): string => (path.length <= 150 ? path : `…${path.slice(-150)}`)
