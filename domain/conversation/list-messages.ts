import type { Message } from '../../contract/messages.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { isFull, pageBySizeSql, type SizedRow } from '../events/page-by-size.ts'
import { messageTypes, presentMessage, type StoredEvent } from '../events/present.ts'

const MESSAGES_PAGE = 20

/** Inlined rather than passed as a parameter: with one, a prepared statement could not use the index of messages. */
const MESSAGE_TYPES = Prisma.raw(messageTypes.map((type) => `'${type}'`).join(', '))

type Order = 'asc' | 'desc'
/** A place in the list. `after` is the last sequence that was read; `skip` counts from there. */
type Place = { order: Order; after: number | undefined; skip: number; take: number }
type Row = StoredEvent & SizedRow

/**
 * Reads the messages of a session in `order`, in pages that fit in memory. Throws `not_found` when the session is gone,
 * even if it is deleted in the meantime.
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
    if (last === undefined || (rows.length < take && !isFull(rows))) return
    after = last.sequence
    left -= rows.length
    // A page cut short by its size means large messages: ask for fewer.
    wanted = Math.min(MESSAGES_PAGE, 2 * rows.length)
  }
}

/** Reads one page together with the session: its messages are deleted after it, so they do not prove that it exists. */
async function readPage(deps: Deps, sessionId: string, { order, after, skip, take }: Place): Promise<Row[]> {
  const direction = order === 'asc' ? Prisma.sql`ASC` : Prisma.sql`DESC`
  const isAfter = order === 'asc' ? Prisma.sql`sequence > ${after}` : Prisma.sql`sequence < ${after}`
  const messages = Prisma.sql`
    SELECT sequence, type, ts, turn_id, step, exec_id, data FROM events
    WHERE session_id = s.id AND type IN (${MESSAGE_TYPES}) AND ${after === undefined ? Prisma.sql`true` : isAfter}
    ORDER BY sequence ${direction} LIMIT ${take} OFFSET ${skip}`
  const found = await deps.db.$queryRaw<Row[]>`
    SELECT s.id AS "sessionId", page.* FROM sessions s
      LEFT JOIN LATERAL ${pageBySizeSql(messages, order === 'asc' ? 'ASC' : 'DESC')} AS page ON true
    WHERE s.id = ${sessionId}::uuid ORDER BY page.sequence ${direction}`
  if (found.length === 0) throw notFound('Session')
  // A session without such messages yields one row with no message.
  return found.filter((row) => row.sequence !== null)
}
