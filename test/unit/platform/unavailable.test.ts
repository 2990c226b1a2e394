import pg from 'pg'
import { PostgresUnavailable, reportLostConnections, unavailability } from '../../../platform/unavailable.ts'
import { Prisma } from '../../../prisma/generated/client.ts'

const withCode = (code: string, message = ''): Error => Object.assign(new Error(message), { code })
const ofPrisma = (code: string, meta?: Record<string, unknown>) =>
  new Prisma.PrismaClientKnownRequestError('Transaction API error', { code, clientVersion: '7', ...(meta && { meta }) })

/** Returns the error with which a pool rejects when its driver rejects with the given one. */
async function reported(error: Error): Promise<unknown> {
  const pool = Object.assign(new pg.Pool(), { query: () => Promise.reject(error) })
  reportLostConnections(pool)
  return pool.query('SELECT 1').catch((thrown: unknown) => thrown)
}

describe('an error of a dependency', () => {
  it.each([new PostgresUnavailable('overloaded', new Error('none free')), ofPrisma('P2028')])(
    'says that the service is too busy: %s',
    (error) => {
      expect(unavailability(error)).toBe('overloaded')
    },
  )

  it.each([
    withCode('ECONNREFUSED'),
    withCode('ECONNRESET', 'read ECONNRESET'),
    withCode('ENOTFOUND', 'getaddrinfo ENOTFOUND postgres'),
    withCode('EAI_AGAIN'),
    withCode('08006', 'connection failure'),
    withCode('57P01', 'terminating connection due to administrator command'),
    withCode('57P03', 'the database system is starting up'),
    withCode('53300', 'sorry, too many clients already'),
    new PostgresUnavailable('away', new Error('Connection terminated unexpectedly')),
    ofPrisma('P2028', { operation: 'query', timeout: 15_000, timeTaken: 15_001 }),
  ])('says that a dependency is away: %s', (error) => {
    expect(unavailability(error)).toBe('away')
  })

  it.each([
    withCode('23505', 'duplicate key value violates unique constraint'),
    withCode('57014', 'canceling statement due to statement timeout'),
    ofPrisma('P2028', { operation: 'query' }),
    ofPrisma('P2002'),
    new Error('Connection terminated unexpectedly'),
    new TypeError('x is not a function'),
    'ECONNREFUSED',
    undefined,
  ])('says neither for an internal error: %s', (error) => {
    expect(unavailability(error)).toBeUndefined()
  })
})

describe("a failure of Postgres's driver", () => {
  it.each([
    ['Client has encountered a connection error and is not queryable', 'away'],
    ['Connection terminated unexpectedly', 'away'],
    ['a sentence that nobody has seen yet', 'away'],
    ['timeout exceeded when trying to connect', 'overloaded'],
  ])('is reported as such, whatever it says: %s', async (message, reason) => {
    expect(await reported(new Error(message))).toMatchObject({ name: 'PostgresUnavailable', reason, message })
  })

  it.each([
    new pg.DatabaseError('duplicate key value violates unique constraint', 1, 'error'),
    new TypeError('Query values must be an array'),
    new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
    new Error('The server does not support SSL connections'),
  ])('is not what a mistake of the caller is: %s', async (error) => {
    expect(await reported(error)).toBe(error)
  })
})
