import { Prisma } from '../../prisma/generated/client.ts'

/** Size of a page in bytes. The row that exceeds it is the page's last. */
const PAGE_BYTES = 256 * 1024

/** Row with the total size of all rows up to and including it. */
export type SizedRow = { bytes: bigint }

export const isFull = (rows: SizedRow[]): boolean => (rows.at(-1)?.bytes ?? 0) >= PAGE_BYTES

type SizedPage = {
  /** SELECT of some of the next rows. */
  found: Prisma.Sql
  /** Order of the rows, as in ORDER BY. */
  order: Prisma.Sql
  /** Columns to read. */
  columns: Prisma.Sql
  /** Columns that may be large. */
  sized: readonly string[]
}

/**
 * Selects the first of the found rows, up to PAGE_BYTES, each with its `bytes`. A compressed value may be a hundred
 * times larger when read, and measuring it means decompressing it, so only rows within PAGE_BYTES by their stored size
 * are measured. A measured size is never below the stored one: if the stored size cut rows off, the page is full.
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
