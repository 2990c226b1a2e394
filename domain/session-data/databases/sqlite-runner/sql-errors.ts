import type { Reply } from './job.ts'
import { errcodeOf, SqlProblem } from './rows.ts'

const MAX_MESSAGE_LENGTH = 1000

/** Codes of SQLite for errors that the SQL did not cause. */
const CORRUPT = [11, 26, 11 | (2 << 8), 11 | (3 << 8)]
const INTERNAL = [5, 10, 14]
/** Reported by virtual tables whose contents SQL itself has made inconsistent. */
const CORRUPT_VIRTUAL_TABLE = 11 | (1 << 8)
const READONLY = 8
const FULL = 13
const TOO_BIG = 18

/** Describes an error, with the authorizer's reason if it refused something. */
export function problemOf(error: unknown, refusal: string | undefined, isQuery: boolean): Reply {
  if (error instanceof SqlProblem) return sqlError(error.message)
  const code = errcodeOf(error)
  if (!(error instanceof Error) || code === undefined || INTERNAL.includes(code & 0xff)) {
    return { outcome: 'failed', message: String(error) }
  }
  // A writable database that SQLite considers read-only has a damaged header.
  if (CORRUPT.includes(code) || (!isQuery && (code & 0xff) === READONLY))
    return { outcome: 'damaged', message: error.message }
  return sqlError(refusal ?? sentenceOf(code, error.message))
}

function sentenceOf(code: number, message: string): string {
  if (code === FULL) return 'The database would be larger than 50 MiB. Delete what is not needed first'
  if (code === TOO_BIG) return `A value may have 20 MB, and a statement 1 MB (${message})`
  if ((code & 0xff) === READONLY) return 'A query can only read; run what changes the database with sql_execute'
  if (code === CORRUPT_VIRTUAL_TABLE) return `The contents of a virtual table are inconsistent (${message})`
  if (message.startsWith('cannot VACUUM')) return 'VACUUM is not available: free pages are used again by themselves'
  return message
}

const sqlError = (message: string): Reply => ({
  outcome: 'sql_error',
  message: message.slice(0, MAX_MESSAGE_LENGTH).toWellFormed(),
})
