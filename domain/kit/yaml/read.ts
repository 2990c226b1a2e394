import { tooMany } from '../errors.ts'
import type { YamlAnswer } from './parse.ts'
import type { DocumentThreads } from './threads.ts'

/** Maximum CPU time of a document, in ms. */
const TIME_LIMIT_MS = 2000
const BUSY_SECONDS = 5

/**
 * Reads untrusted YAML in a thread. 'late' if it takes too long, 'broken' if it is too large or too deeply nested to
 * read. Throws `too_many` while the service is busy with other documents.
 */
export async function readYaml(
  threads: DocumentThreads,
  text: string,
  { owner }: { owner: string },
): Promise<YamlAnswer | 'late' | 'broken'> {
  const { answers, end } = await threads.run(text, TIME_LIMIT_MS, undefined, { owner })
  if (answers[0] !== undefined) return answers[0]
  if (end === 'busy') throw tooMany('Documents cannot be read at the moment', BUSY_SECONDS)
  return end === 'late' ? 'late' : 'broken'
}

/** Sentences for a document that could not be read. */
export const UNREADABLE = {
  late: 'The document takes too long to read',
  broken: 'The document is too large or too deeply nested to read',
}
