import type { Message } from '../../contract/messages.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import { messageTypes, presentMessage, type StoredEvent } from '../events/log/present.ts'
import { stepSql } from '../events/log/steps.ts'
import { EVENT_COLUMNS, sizedEventsSql } from '../events/read/page-sql.ts'
import { noSession } from '../kit/errors.ts'
import { type PageStart, type Pages, pages } from '../kit/lists.ts'
import { isFull, type SizedRow } from '../kit/page-by-size.ts'
import type { Deps } from './deps.ts'

const MESSAGES_AT_ONCE = 20

/** Inlined, because with a parameter a prepared statement could not use the index of messages. */
const MESSAGE_TYPES = Prisma.raw(messageTypes.map((type) => `'${type}'`).join(', '))

/** A tool's question to its user is not a call of the model's, so its answer belongs to no message. */
const IS_QUESTION = stepSql.isQuestion(Prisma.sql`step`)

type Order = 'asc' | 'desc'
type Row = StoredEvent & SizedRow

/**
 * Reads the messages of a session in `order`, in pages that fit in memory. Throws `not_found` if the session is gone or
 * is deleted meanwhile.
 */
export const readMessages = (
  deps: Deps,
  sessionId: string,
  { order, ...part }: { order: Order; limit?: number | undefined; offset: number },
): Pages<Message> =>
  pages({
    ...part,
    atOnce: MESSAGES_AT_ONCE,
    read: async (place: PageStart<Row>) => {
      const rows = await readPage(deps, sessionId, order, place)
      return { rows, hasMore: isFull(rows) || rows.length === place.take }
    },
    present: (rows) => rows.map(presentMessage),
  })

/**
 * Joins the session, because a deleted session's messages are deleted later: their existence does not prove its own.
 */
async function readPage(
  deps: Deps,
  sessionId: string,
  order: Order,
  { after, skip, take }: PageStart<Row>,
): Promise<Row[]> {
  const direction = order === 'asc' ? Prisma.sql`ASC` : Prisma.sql`DESC`
  const isAfter =
    order === 'asc' ? Prisma.sql`sequence > ${after?.sequence}` : Prisma.sql`sequence < ${after?.sequence}`
  const messages = Prisma.sql`
    SELECT ${EVENT_COLUMNS} FROM events
    WHERE session_id = s.id AND type IN (${MESSAGE_TYPES}) AND NOT ${IS_QUESTION} AND ${after === undefined ? Prisma.sql`true` : isAfter}
    ORDER BY sequence ${direction} LIMIT ${take} OFFSET ${skip}`
  const found = await deps.db.$queryRaw<Row[]>`
    SELECT s.id AS "sessionId", page.* FROM sessions s
      LEFT JOIN LATERAL ${sizedEventsSql(messages, direction)} AS page ON true
    WHERE s.id = ${sessionId}::uuid ORDER BY page.sequence ${direction}`
  if (found.length === 0) throw noSession()
  // A session without matching messages yields one row without a message.
  return found.filter((row) => row.sequence !== null)
}
