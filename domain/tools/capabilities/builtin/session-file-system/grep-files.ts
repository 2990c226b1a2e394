import { type GrepMatch, MAX_PATTERN_LENGTH } from '../../../../../contract/files.ts'
import { cutAt } from '../../../../../lib/truncate.ts'
import type { Found } from '../../../../session-data/files/grep/found.ts'
import type { Tool } from '../../capability.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
/** Maximum length of a line, in UTF-16 code units, and of a result, as JSON. */
const MAX_LINE_LENGTH = 500
const MAX_RESULT_CHARACTERS = 100_000

export const grepFiles: Tool = {
  name: 'grep_files',
  displayName: 'Search in files',
  description: `Finds the lines of the session's text files that match a regular expression, by path and line number. Gives ${DEFAULT_LIMIT} matches at a time, and says how many are left.`,
  parameters: {
    type: 'object',
    properties: {
      pattern: {
        type: 'string',
        minLength: 1,
        maxLength: MAX_PATTERN_LENGTH,
        description: 'A regular expression in the syntax of RE2, such as `(?i)todo`, which is sought in each line.',
      },
      path_pattern: {
        type: 'string',
        maxLength: MAX_PATTERN_LENGTH,
        description: 'A glob: `*.ts` for names at any depth, `/docs/**` for everything in a directory. Default: all.',
      },
      offset: { type: 'integer', minimum: 0, description: 'Number of matches to skip. Default: 0.' },
      limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, description: `Default: ${DEFAULT_LIMIT}.` },
    },
    required: ['pattern'],
    additionalProperties: false,
  },
  timeoutMs: 90_000,
  mayRunAgain: true,
  async run({ pattern, path_pattern, offset = 0, limit = DEFAULT_LIMIT }, { files }) {
    const pathPattern = path_pattern === undefined ? {} : { path_pattern: String(path_pattern) }
    const found = await files.grep({ pattern: String(pattern), ...pathPattern })
    return { value: pageOf(found, Number(offset), Number(limit)) }
  },
}

/** Returns a page of the matches, and the offset of the next one. */
function pageOf({ results, isTruncated }: Found, offset: number, limit: number) {
  const all = results.flatMap(({ matches }) => matches)
  const matches = withinSize(all.slice(offset, offset + limit).map(shorten))
  const next = offset + matches.length
  return {
    matches,
    ...(next < all.length ? { next_offset: next, matches_left: all.length - next } : {}),
    ...(isTruncated ? { note: `There are more than ${all.length} matches; narrow pattern or path_pattern.` } : {}),
  }
}

const shorten = ({ line, ...match }: GrepMatch): GrepMatch => ({
  ...match,
  line: line.length > MAX_LINE_LENGTH ? `${cutAt(line, MAX_LINE_LENGTH)}…` : line,
})

/** Returns the first matches within the size limit, at least one. */
function withinSize(matches: GrepMatch[]): GrepMatch[] {
  let size = 0
  const tooMany = matches.findIndex((match) => {
    size += JSON.stringify(match).length
    return size > MAX_RESULT_CHARACTERS
  })
  return tooMany === -1 ? matches : matches.slice(0, Math.max(1, tooMany))
}
