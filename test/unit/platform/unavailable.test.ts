import { unavailability } from '../../../platform/unavailable.ts'

const withCode = (code: string, message = ''): Error => Object.assign(new Error(message), { code })

describe('an error of a dependency', () => {
  it.each([
    new Error('timeout exceeded when trying to connect'),
    new Error('Transaction API error: Unable to start a transaction in the given time.'),
  ])('says that the service is too busy: %s', (error) => {
    expect(unavailability(error)).toBe('overloaded')
  })

  it.each([
    withCode('ECONNREFUSED'),
    withCode('ECONNRESET', 'read ECONNRESET'),
    withCode('ENOTFOUND', 'getaddrinfo ENOTFOUND postgres'),
    withCode('EAI_AGAIN'),
    withCode('57P01', 'terminating connection due to administrator command'),
    withCode('57P03', 'the database system is starting up'),
    withCode('53300', 'sorry, too many clients already'),
    new Error('Connection terminated unexpectedly'),
    new Error('Postgres has not answered in time'),
    new Error("Can't reach database server at 127.0.0.1:5432"),
    new Error('timeout expired'),
  ])('says that a dependency is away: %s', (error) => {
    expect(unavailability(error)).toBe('away')
  })

  it.each([
    withCode('23505', 'duplicate key value violates unique constraint'),
    withCode('57014', 'canceling statement due to statement timeout'),
    new TypeError('x is not a function'),
    'ECONNREFUSED',
    undefined,
  ])('says neither for an internal error: %s', (error) => {
    expect(unavailability(error)).toBeUndefined()
  })
})
