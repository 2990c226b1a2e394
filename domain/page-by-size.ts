import { Prisma } from '../prisma/generated/client.ts'

/** A page ends with the row that passes this: it is bounded in bytes, not only in number. */
const PAGE_BYTES = 256 * 1024

/** `bytes`: of the rows up to and with this one. */
export type SizedRow = { bytes: bigint }

export const isFull = (rows: SizedRow[]): boolean => (rows.at(-1)?.bytes ?? 0) >= PAGE_BYTES

type SizedPage = {
  /** A SELECT of some of the rows that come next. */
  found: Prisma.Sql
  /** As in ORDER BY. */
  order: Prisma.Sql
  /** What is read of each row. */
  columns: Prisma.Sql
  /** The columns that may be large. */
  sized: readonly string[]
}

/**
 * Of the rows found, those up to PAGE_BYTES, each with its `bytes`. What is stored compressed may be a hundred times as
 * large when it is read, and to learn how large means to unpack it: only what is near the limit as it is stored is asked.
 * A row never counts for less than it did there, so what was left out there makes the rows some that are cut.
 */
export function pageBySizeSql({ found, order, columns, sized }: SizedPage): Prisma.Sql {
  const inOrder = Prisma.sql`(ORDER BY ${order} ROWS UNBOUNDED PRECEDING)`
  const [stored, size] = [sumOf(sized, storedBytes), sumOf(sized, readBytes)]
  return Prisma.sql`(
    SELECT ${columns}, bytes FROM (
      SELECT *, sum(size) OVER ${inOrder} AS bytes FROM (
        SELECT *, ${size} AS size FROM (
          SELECT *, ${stored} AS stored, sum(${stored}) OVER ${inOrder} AS stored_bytes FROM (${found}) AS found
        ) AS stored WHERE stored_bytes - stored < ${PAGE_BYTES}
      ) AS sized
    ) AS measured WHERE bytes - size < ${PAGE_BYTES}
  )`
}

const sumOf = (columns: readonly string[], bytesOf: (column: string) => string): Prisma.Sql =>
  Prisma.raw(`(${columns.map(bytesOf).join(' + ')})`)

const storedBytes = (column: string): string => `coalesce(pg_column_size(${column}), 0)`

const readBytes = (column: string): string =>
  `CASE WHEN pg_column_compression(${column}) IS NULL THEN ${storedBytes(column)}
     ELSE greatest(pg_column_size(${column}), octet_length(${column}::text)) END`
