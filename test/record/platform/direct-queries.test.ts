import { createLog } from '../../../platform/log.ts'
import { connectPostgres, type Postgres } from '../../../platform/postgres/postgres.ts'
import { unavailability } from '../../../platform/unavailable.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { cloneDatabase } from '../../support/database.ts'

let postgres: Postgres
beforeAll(async () => {
  const { url } = await cloneDatabase()
  // One connection, so that both ways share its prepared statements.
  postgres = connectPostgres({ DATABASE_URL: url, DATABASE_POOL_SIZE: 1 }, createLog('silent', 'test'))
})
afterAll(() => postgres.close())

/** Runs the statement by the driver itself, and by Prisma in a transaction. */
async function bothWays(query: Prisma.Sql): Promise<{ direct: unknown; prisma: unknown }> {
  const { db } = postgres
  return { direct: await db.$queryRaw(query), prisma: await db.$transaction((tx) => tx.$queryRaw(query)) }
}

const UUID = '01933b5a-0000-7000-8000-000000000601'
const AT = new Date('2026-02-03T04:05:06.789Z')

describe('a statement outside of transactions', () => {
  it.each([
    [
      'numbers',
      Prisma.sql`SELECT 1::int2 AS a, 2 AS b, 9007199254740993::int8 AS c, 0.1::float8 AS d, 1.5::float4 AS e`,
    ],
    ['decimals', Prisma.sql`SELECT 0.000001::numeric AS a, '12345678901234567890.5'::numeric AS b, 10::numeric AS c`],
    ['texts', Prisma.sql`SELECT 'a' AS a, 'b'::varchar AS b, ${UUID}::uuid AS c, 'idle'::session_status AS d`],
    [
      'times',
      Prisma.sql`SELECT ${AT}::timestamptz AS a, '2026-02-03 04:05:06.1'::timestamp AS b, '2026-02-03'::date AS c`,
    ],
    [
      'JSON',
      Prisma.sql`SELECT '{"a":[1,null,"x"]}'::jsonb AS a, 'null'::jsonb AS b, '"x"'::json AS c, '3'::jsonb AS d`,
    ],
    ['bytes', Prisma.sql`SELECT '\\x00ff'::bytea AS a, ${Buffer.from('bytes')}::bytea AS b`],
    ['nothing', Prisma.sql`SELECT NULL AS a, NULL::int8 AS b, NULL::numeric AS c, NULL::jsonb AS d, NULL::bytea AS e`],
    ['booleans', Prisma.sql`SELECT true AS a, ${false}::boolean AS b`],
    ['lists', Prisma.sql`SELECT ${[UUID]}::uuid[] AS a, ${['a,"b', 'NULL', '']}::text[] AS b, ARRAY[1, NULL] AS c`],
    ['lists of numbers', Prisma.sql`SELECT ${[1, 2]}::int[] AS a, '{1,NULL}'::int8[] AS b, '{0.10}'::numeric[] AS c`],
    ['lists of times', Prisma.sql`SELECT ARRAY[${AT}::timestamptz] AS a, ARRAY['2026-02-03'::date, NULL] AS b`],
    ['given values', Prisma.sql`SELECT ${1}::int AS a, ${2n}::int8 AS b, ${1.5}::float8 AS c, ${null}::text AS d`],
    ['given JSON', Prisma.sql`SELECT ${JSON.stringify({ a: ['"\\'] })}::jsonb AS a, ${{ b: AT }}::jsonb AS b`],
    ['several rows', Prisma.sql`SELECT n, n AS "camelCase" FROM generate_series(1, 3) AS n`],
    ['no rows', Prisma.sql`SELECT 1 AS a WHERE false`],
    ['parts', Prisma.sql`SELECT ${Prisma.sql`${'x'} || ${'y'}`} AS a ${Prisma.empty}, ${Prisma.raw('1')} AS b`],
  ])('gives what Prisma gives: %s', async (_, query) => {
    const { direct, prisma } = await bothWays(query)
    expect(direct).toStrictEqual(prisma)
  })

  it('is prepared once, whichever way it takes', async () => {
    const query = Prisma.sql`SELECT ${'x'} || 'prepared once' AS a`
    await bothWays(query)
    await bothWays(query)
    const rows = await postgres.db.$queryRaw`
      SELECT statement FROM pg_prepared_statements WHERE statement LIKE ${'%prepared once%'}`
    expect(rows).toEqual([{ statement: query.text }])
  })

  it('does not leave a transaction that runs beside it', async () => {
    const { db } = postgres
    const insert = (id: string) =>
      Prisma.sql`INSERT INTO service_keys (name, value) VALUES (${id}, '\\x00') RETURNING name`
    const work = db.$transaction(async (tx) => {
      expect(await tx.$queryRaw(insert('rolled back'))).toEqual([{ name: 'rolled back' }])
      throw new Error('rolled back')
    })
    await expect(work).rejects.toThrow('rolled back')
    expect(await db.$queryRaw(insert('rolled back'))).toEqual([{ name: 'rolled back' }])
  })

  it('fails with the code of Postgres, which does not count as an outage and quotes no row in the log', async () => {
    const { db } = postgres
    const insert = () => db.$queryRaw`INSERT INTO service_keys (name, value) VALUES (${'twice'}, ${'\\x00'}::bytea)`
    await insert()
    const error = await insert().catch((error: unknown) => error)
    expect(error).toMatchObject({ code: '23505', constraint: 'service_keys_pkey' })
    expect(unavailability(error)).toBeUndefined()
    const lines: string[] = []
    createLog('error', 'test', { write: (line) => lines.push(line) }).error({ err: error }, 'failed')
    expect(lines.join()).not.toContain('twice')
  })
})
