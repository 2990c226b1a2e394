import { Prisma } from '../../prisma/generated/client.ts'

/** Rows end with the one that passes this: they are bounded in bytes, not only in number. */
export const PAGE_BYTES = 256 * 1024

/** `bytes`: of the rows up to and with this one. */
export type SizedRow = { bytes: bigint }

export const isFull = (rows: SizedRow[]): boolean => (rows.at(-1)?.bytes ?? 0) >= PAGE_BYTES

/**
 * Of the events found, in the order of their sequence, those up to PAGE_BYTES; `found` selects what is stored. What is
 * stored compressed may be a hundred times as large when it is read, and to learn how large means to unpack it: only what
 * is near the limit as it is stored is asked. A row never counts for less than it did there, so what was left out there
 * makes the rows some that are cut.
 */
export const pageBySizeSql = (found: Prisma.Sql, direction: 'ASC' | 'DESC' = 'ASC'): Prisma.Sql => {
  const inOrder = Prisma.raw(`(ORDER BY sequence ${direction} ROWS UNBOUNDED PRECEDING)`)
  return Prisma.sql`(
    SELECT sequence, type, ts, turn_id AS "turnId", step, exec_id AS "execId", data, bytes FROM (
      SELECT *, sum(size) OVER ${inOrder} AS bytes FROM (
        SELECT *, CASE WHEN pg_column_compression(data) IS NULL THEN stored
          ELSE greatest(stored, octet_length(data::text)) END AS size
        FROM (
          SELECT *, pg_column_size(data) AS stored, sum(pg_column_size(data)) OVER ${inOrder} AS stored_bytes
          FROM (${found}) AS found
        ) AS stored WHERE stored_bytes - stored < ${PAGE_BYTES}
      ) AS sized
    ) AS measured WHERE bytes - size < ${PAGE_BYTES}
  )`
}
