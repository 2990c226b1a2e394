import { toConfigError } from '../../../platform/postgres/start-failure.ts'
import { PostgresUnavailable } from '../../../platform/unavailable.ts'

const withCode = (code: string, message: string): Error => Object.assign(new Error(message), { code })

describe('a failure of Postgres at the start', () => {
  it.each([
    ['42P05', 'prepared statement "s6" already exists', /; a pooler in transaction mode needs DATABASE_POOLER=/],
    ['26000', 'prepared statement "s6" does not exist', /; a pooler in transaction mode needs DATABASE_POOLER=/],
    ['28P01', 'password authentication failed for user "a"', /: the server refuses the login: password auth/],
    ['ERR_INVALID_URL', 'Invalid URL', /: must be an address such as /],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'wrong version number', /: no TLS connection: wrong version number$/],
  ])('has a sentence for the code %s', (code, message, sentence) => {
    expect(toConfigError(withCode(code, message), 'DATABASE_URL')?.message).toMatch(sentence)
    const wrapped = new PostgresUnavailable('away', withCode(code, message))
    expect(toConfigError(wrapped, 'DATABASE_MIGRATION_URL')?.message).toMatch(/^DATABASE_MIGRATION_URL: /)
  })

  it.each([
    withCode('ECONNREFUSED', 'connect ECONNREFUSED'),
    withCode('57P03', 'the database system is starting up'),
    new Error('timeout expired'),
    undefined,
    null,
  ])('has none when it may pass: %s', (error) => {
    expect(toConfigError(error, 'DATABASE_URL')).toBeUndefined()
  })
})
