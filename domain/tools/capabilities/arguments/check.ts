import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Claim } from '../../../../lib/fair-queue.ts'
import type { Ran } from '../../../../lib/threads/pool.ts'
import { tooMany } from '../../../kit/errors.ts'
import { AJV_OPTIONS, argumentsProblem, TOO_LARGE } from './schema-problems.ts'
import type { Schema, SchemaJob, SentCall } from './schema-worker.ts'
import type { SchemaThreads } from './threads.ts'

/**
 * Checks of tools' schemas and of calls' arguments. Tenants write schemas, and a pattern in one can take years, so they
 * are compiled and run in threads with a time limit. The service's own schemas are trusted and compiled once, in
 * process; only large arguments for them go to a thread too.
 */

/** CPU time limits of one job. */
const ARGUMENTS_MS = 1000
const SCHEMAS_MS = 2000
/**
 * Maximum length of the arguments of all calls in one answer of a model. A thread that suddenly needs much more memory
 * crashes the process.
 */
const MAX_CHARACTERS = 1_000_000
/** Maximum length of arguments checked in process: a megabyte of invalid ones would take half a second. */
const MAX_CHARACTERS_IN_PROCESS = 50_000

type Problem = string | undefined
type Arguments = Record<string, unknown>

const trusted = new Ajv2020(AJV_OPTIONS)

/**
 * A call to check. `isTrusted`: the schema is the service's own, one object for the lifetime of the process. Problems
 * within `secret` fields are not quoted.
 */
export type CheckedCall = { schema: Schema; args: Arguments; isTrusted: boolean; secret?: string[] }

/** The threads are shared fairly among organizations. */
type CheckOptions = { signal?: AbortSignal; timeLimitMs?: number; owner?: string }

/** Problem of arguments while all threads are taken. */
export const BUSY = 'The arguments could not be checked because the service is busy; call again later.'

const UNCHECKED_ARGUMENTS: Record<Ran<Problem>['end'], string> = {
  done: 'The arguments could not be checked.',
  late: 'The arguments could not be checked in time; pass simpler ones.',
  broken: TOO_LARGE,
  busy: BUSY,
}

/**
 * Returns the problem of each call's arguments, as a sentence for the model that names the fields, or undefined. All
 * calls share `timeLimitMs` of CPU time, after which the others are refused. Calls of a turn are checked before schemas.
 */
export async function checkArguments(
  threads: SchemaThreads,
  calls: CheckedCall[],
  { signal, timeLimitMs = ARGUMENTS_MS, owner }: CheckOptions = {},
): Promise<Problem[]> {
  const sent: SentCall[] = []
  let characters = 0
  const places = calls.map(({ schema, args, isTrusted, secret }) => {
    const text = toText(args)
    if (text === undefined) return TOO_LARGE
    characters += text.length
    if (characters > MAX_CHARACTERS) return TOO_LARGE
    if (isTrusted && characters <= MAX_CHARACTERS_IN_PROCESS) return checkTrusted(schema, args, secret)
    return sent.push({ schema, args: text, secret }) - 1
  })
  const { answers, end } = await runJob(threads, { calls: sent }, sent.length, timeLimitMs, signal, {
    owner,
    isUrgent: true,
  })
  return places.map((place) => {
    if (typeof place !== 'number') return place
    return place < answers.length ? answers[place] : UNCHECKED_ARGUMENTS[end]
  })
}

/** Serializes arguments; undefined when they are nested too deeply. */
function toText(args: Arguments): string | undefined {
  try {
    return JSON.stringify(args)
  } catch {
    return undefined
  }
}

/** Checks arguments in process. Ajv caches compiled schemas by object identity. */
function checkTrusted(schema: Schema, args: Arguments, secret?: string[]): Problem {
  const validate = trusted.compile(schema)
  return validate(args) ? undefined : argumentsProblem(validate.errors ?? [], secret)
}

/**
 * Returns for each schema the reason why it cannot be a tool's parameters, as a clause to follow the tool's name, or
 * undefined. All schemas share two seconds of CPU time. Throws `too_many` when the service is busy.
 */
export async function checkSchemas(threads: SchemaThreads, schemas: Schema[], owner?: string): Promise<Problem[]> {
  const { answers, end } = await runJob(threads, { schemas }, schemas.length, SCHEMAS_MS, undefined, { owner })
  if (end === 'busy') throw tooMany('Tools cannot be checked at the moment', 5)
  const unchecked = end === 'late' ? 'it takes too long to check' : 'it is too large or too deeply nested'
  return schemas.map((_, position) => (position < answers.length ? answers[position] : unchecked))
}

const runJob = async (
  threads: SchemaThreads,
  job: SchemaJob,
  size: number,
  timeLimitMs: number,
  signal: AbortSignal | undefined,
  claim: Claim,
): Promise<Ran<Problem>> =>
  size === 0 ? { answers: [], end: 'done', cpuMs: 0 } : threads.run(job, timeLimitMs, signal, claim)
