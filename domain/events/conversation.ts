import type { Message } from '../../contract/messages.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { presentMessage, type StoredEvent } from './present.ts'

type Row = Omit<StoredEvent, 'sessionId' | 'execId' | 'ts'> & { ts: string; inputSequence: number }

/** The latest messages of a conversation, oldest first; null when it has none. */
export type ConversationPage = { rows: Row[] | null; isWhole: boolean }

/** As it is stored, so compressed: no page is too large for Postgres to put together, or for a process to hold. */
const PAGE_BYTES = 512 * 1024
/** Several times what any model takes; what is older is not even read. */
const MAX_CONVERSATION_BYTES = 32 * 1024 * 1024
const END = 2 ** 31 - 1

/** A place in a conversation: turns are in the order of their messages, and whole before the next begins. */
type Place = { inputSequence: number; sequence: number }

/**
 * A page of the conversation as a turn sees it, as one JSON value: earlier turns whole, then its own message and what
 * came of it before sequence `before`. Messages that queue behind the turn are not in it.
 */
export const conversationSql = (turnId: string, before = END, from?: Place): Prisma.Sql => Prisma.sql`(
  SELECT jsonb_build_object(
    'rows', jsonb_agg(jsonb_build_object(
      'sequence', sequence, 'type', type, 'ts', ts, 'turnId', turn_id, 'step', step, 'inputSequence', input_sequence,
      'data', data
    ) ORDER BY input_sequence, sequence) FILTER (WHERE bytes_behind < ${PAGE_BYTES}),
    'isWhole', coalesce(bool_and(bytes_behind < ${PAGE_BYTES}), true)
  )
  FROM (
    SELECT e.*, earlier.input_sequence, sum(pg_column_size(e.data)) OVER newest_first - pg_column_size(e.data) AS bytes_behind
    FROM turns own
    JOIN turns earlier ON earlier.session_id = own.session_id AND earlier.input_sequence <= own.input_sequence
    JOIN events e ON e.turn_id = earlier.id AND e.sequence < ${before}
      AND e.type IN ('input.message', 'output.message.completed', 'tool.completed')
    WHERE own.id = ${turnId}::uuid ${from === undefined ? Prisma.empty : isBefore(from)}
    WINDOW newest_first AS (ORDER BY earlier.input_sequence DESC, e.sequence DESC)
  ) AS message
)`

const isBefore = ({ inputSequence, sequence }: Place): Prisma.Sql =>
  Prisma.sql`AND (earlier.input_sequence, e.sequence) < (${inputSequence}, ${sequence})`

/** The conversation of a turn before sequence `before`. What is longer than a process should hold begins later. */
export async function readConversation(
  deps: Deps,
  sessionId: string,
  turnId: string,
  before?: number,
): Promise<Message[]> {
  const latest = await readPage(deps, conversationSql(turnId, before))
  return completeConversation(deps, sessionId, turnId, before, latest)
}

/** Reads on from the latest page, towards the beginning. */
export async function completeConversation(
  deps: Deps,
  sessionId: string,
  turnId: string,
  before: number | undefined,
  latest: ConversationPage,
): Promise<Message[]> {
  const pages: ConversationPage[] = []
  let oldest = latest
  for (let bytes = 0; !oldest.isWhole; ) {
    bytes += sizeOf(oldest)
    const place = oldest.rows?.[0]
    if (place === undefined || bytes > MAX_CONVERSATION_BYTES) break
    pages.unshift(oldest)
    oldest = await readPage(deps, conversationSql(turnId, before, place))
  }
  const rows = [oldest, ...pages].flatMap((page) => page.rows ?? [])
  const kept = oldest.isWhole ? rows : fromMessage(rows, turnId, await readPage(deps, inputSql(turnId)))
  return kept.map((row) => presentMessage({ ...row, execId: null, ts: new Date(row.ts), sessionId }))
}

async function readPage(deps: Deps, page: Prisma.Sql): Promise<ConversationPage> {
  const rows = await deps.db.$queryRaw<{ page: ConversationPage }[]>`SELECT ${page} AS page`
  return rows[0]?.page ?? { rows: null, isWhole: true }
}

/** What does not begin with the beginning begins with somebody's message, at the latest with the turn's own. */
function fromMessage(rows: Row[], turnId: string, input: ConversationPage): Row[] {
  const start = rows.findIndex(({ type }) => type === 'input.message')
  return start < 0 ? [...(input.rows ?? []), ...rows.filter((row) => row.turnId === turnId)] : rows.slice(start)
}

const inputSql = (turnId: string): Prisma.Sql =>
  Prisma.sql`(
    SELECT jsonb_build_object('isWhole', true, 'rows', jsonb_agg(jsonb_build_object(
      'sequence', sequence, 'type', type, 'ts', ts, 'turnId', turn_id, 'step', step, 'inputSequence', sequence, 'data', data
    )))
    FROM events WHERE turn_id = ${turnId}::uuid AND type = 'input.message'
  )`

const sizeOf = ({ rows }: ConversationPage): number => JSON.stringify(rows ?? []).length

/** The bytes of images are in the events of their own messages; with each model call again they would be most of a session. */
export const withoutImages = (message: Message): Message => ({
  ...message,
  content: message.content.map((part) => (part.type === 'image' && part.base64 ? { ...part, base64: null } : part)),
})
