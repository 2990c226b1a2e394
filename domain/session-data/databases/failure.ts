import { conflict, DomainError, notFound, tooMany } from '../../kit/errors.ts'
import type { Ran } from './sqlite-runner/sqlite-runner.ts'

/**
 * Returns the result of a job of the SQLite runner. Throws `too_many` if it could not be run now, `conflict` if others
 * kept changing the database, `not_found` if the database is gone, and `unprocessable` for SQL that is wrong or takes
 * too much, and for a damaged database.
 */
export function resultOf<Result>(ran: Ran<Result>): Result {
  switch (ran.outcome) {
    case 'done':
      return ran.result
    case 'busy':
      throw tooMany(ran.message, 2)
    case 'conflict':
      throw conflict(ran.message)
    case 'gone':
      throw notFound('Database')
    default:
      throw new DomainError('unprocessable', ran.message)
  }
}
