import type { SchemaThreads } from './threads.ts'

/** CPU time limit of one check. */
const CHECK_MS = 1000

const TOO_LARGE = 'It is too large or too deeply nested to be checked; give a smaller one.'
const UNCHECKED = {
  done: TOO_LARGE,
  late: 'It could not be checked in time; give a simpler one.',
  broken: TOO_LARGE,
}

type CheckOptions = { signal?: AbortSignal; owner: string }

/**
 * Returns the problem of an answer, which is JSON, as a sentence for the model that names the fields. Undefined if it fits
 * its schema, and `busy` if it could not be checked. Tenants write schemas, so a thread runs them, with a time limit.
 */
export async function checkOutput(
  threads: SchemaThreads,
  schema: Record<string, unknown>,
  value: string,
  { signal, owner }: CheckOptions,
): Promise<string | undefined> {
  const { answers, end } = await threads.run({ outputs: [{ schema, value }] }, CHECK_MS, signal, {
    owner,
    isUrgent: true,
  })
  if (answers.length > 0) return answers[0]
  return end === 'busy' ? 'busy' : UNCHECKED[end]
}
