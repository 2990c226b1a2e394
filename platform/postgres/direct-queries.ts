import pg from 'pg'
import { Prisma, type PrismaClient } from '../../prisma/generated/client.ts'

const { builtins, getTypeParser } = pg.types
/** Types of arrays, which the driver's list lacks. */
const [TEXTS, INT8S, NUMERICS, TIMESTAMPS, DATES] = [1009, 1016, 1231, 1115, 1182]

type Parse = (text: string) => unknown

const toDecimal: Parse = (text) => new Prisma.Decimal(text)
const toUtc: Parse = (text) => new Date(`${text.replace(' ', 'T')}Z`)
const toDay: Parse = (text) => new Date(text)
const parseTexts: (text: string) => (string | null)[] = getTypeParser(TEXTS)
const inArray =
  (parse: Parse): Parse =>
  (text) =>
    parseTexts(text).map((item) => (item === null ? null : parse(item)))

/** Types for which Prisma gives other values than the driver. */
const PARSERS = new Map<number, Parse>([
  [builtins.INT8, BigInt],
  [builtins.NUMERIC, toDecimal],
  [builtins.TIMESTAMP, toUtc],
  [builtins.DATE, toDay],
  [builtins.BYTEA, (text) => new Uint8Array(getTypeParser(builtins.BYTEA)(text))],
  [INT8S, inArray(BigInt)],
  [NUMERICS, inArray(toDecimal)],
  [TIMESTAMPS, inArray(toUtc)],
  [DATES, inArray(toDay)],
])

const types = { getTypeParser: (type: number): Parse => PARSERS.get(type) ?? getTypeParser(type) }

/**
 * Returns the client with a `$queryRaw` that asks the driver itself, because Prisma's way to it takes more CPU than the
 * driver. Values of the types in use are the same as Prisma's (the test lists them); errors are the driver's.
 * Transactions and `$executeRaw` stay Prisma's, so `$transaction` takes no list with a `$queryRaw`.
 */
export function withDirectQueries(
  db: PrismaClient,
  pool: pg.Pool,
  nameStatement: (query: { sql: string }) => string,
): PrismaClient {
  const $queryRaw = async (query: TemplateStringsArray | Prisma.Sql, ...given: unknown[]): Promise<unknown> => {
    const { text, values } = 'raw' in query ? Prisma.sql(query, ...given) : query
    const { rows } = await pool.query({ name: nameStatement({ sql: text }), text, values, types })
    return rows
  }
  return new Proxy(db, { get: (client, key) => (key === '$queryRaw' ? $queryRaw : Reflect.get(client, key)) })
}
