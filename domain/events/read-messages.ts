import type { Message } from '../../contract/messages.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { messageTypes, presentMessage, type StoredEvent } from './present.ts'

const MESSAGES_PAGE = 20
/** A page ends with the message that passes this. */
const PAGE_BYTES = 256 * 1024

/** Not as a parameter: a prepared statement could not use the index of messages. */
const MESSAGE_TYPES = Prisma.raw(messageTypes.map((type) => `'${type}'`).join(', '))

type Order = 'asc' | 'desc'
/** `after`: the last sequence that has been read; `skip` comes on top of it. */
type Place = { order: Order; after: number | undefined; skip: number; take: number }
/** `bytes`: of the page up to and with this row. */
type MeasuredRow = StoredEvent & { bytes: bigint }

/**
 * The messages of a session in pages that fit in memory, newest first unless `order` says otherwise. Throws `not_found`
 * when the session is deleted meanwhile.
 */
export async function* readMessages(
  deps: Deps,
  sessionId: string,
  { order, limit = Number.POSITIVE_INFINITY, offset }: { order: Order; limit?: number; offset: number },
): AsyncGenerator<Message[]> {
  let wanted = MESSAGES_PAGE
  let after: number | undefined
  for (let left = limit; left > 0; ) {
    const take = Math.min(wanted, left)
    const rows = await readPage(deps, sessionId, { order, after, skip: after === undefined ? offset : 0, take })
    if (rows.length > 0) yield rows.map(presentMessage)
    const last = rows.at(-1)
    const isCut = last !== undefined && last.bytes >= PAGE_BYTES
    if (last === undefined || (rows.length < take && !isCut)) return
    after = last.sequence
    left -= rows.length
    // Large ones are looked for in small numbers.
    wanted = Math.min(MESSAGES_PAGE, 2 * rows.length)
  }
}

/** Measured like a look at the record (record.ts). A deleted session's messages go after it: what is there is no proof of it. */
async function readPage(deps: Deps, sessionId: string, { order, after, skip, take }: Place): Promise<MeasuredRow[]> {
  const direction = order === 'asc' ? Prisma.sql`ASC` : Prisma.sql`DESC`
  const isAfter = order === 'asc' ? Prisma.sql`sequence > ${after}` : Prisma.sql`sequence < ${after}`
  const found = await deps.db.$queryRaw<MeasuredRow[]>`
    SELECT s.id AS "sessionId", page.* FROM sessions s LEFT JOIN LATERAL (
      SELECT sequence, type, ts, turn_id AS "turnId", step, exec_id AS "execId", data, bytes FROM (
        SELECT *, sum(size) OVER in_order AS bytes FROM (
          SELECT *, CASE WHEN pg_column_compression(data) IS NULL THEN stored
            ELSE greatest(stored, octet_length(data::text)) END AS size
          FROM (
            SELECT *, pg_column_size(data) AS stored, sum(pg_column_size(data)) OVER in_order AS stored_bytes FROM (
              SELECT sequence, type, ts, turn_id, step, exec_id, data FROM events
              WHERE session_id = s.id AND type IN (${MESSAGE_TYPES})
                AND ${after === undefined ? Prisma.sql`true` : isAfter}
              ORDER BY sequence ${direction} LIMIT ${take} OFFSET ${skip}
            ) AS found WINDOW in_order AS (ORDER BY sequence ${direction} ROWS UNBOUNDED PRECEDING)
          ) AS stored WHERE stored_bytes - stored < ${PAGE_BYTES}
        ) AS sized WINDOW in_order AS (ORDER BY sequence ${direction} ROWS UNBOUNDED PRECEDING)
      ) AS measured WHERE bytes - size < ${PAGE_BYTES}
    ) AS page ON true
    WHERE s.id = ${sessionId}::uuid ORDER BY page.sequence ${direction}`
  if (found.length === 0) throw notFound('Session')
  // A session without such messages gives one row, without a message.
  return found.filter((row) => row.sequence !== null)
}
