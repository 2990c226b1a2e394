import type { Message } from '../../contract/messages.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../events/deps.ts'
import { presentMessage, type StoredEvent } from '../events/log/present.ts'
import { isSteer, placeSteers } from './place-steers.ts'
import { fromSummary, withoutRequests } from './summaries.ts'

/** Event of a message, with the position of its turn in the session. */
export type Row = Omit<StoredEvent, 'sessionId' | 'execId' | 'ts'> & { ts: string; inputSequence: number }

/** A message with the position of its turn in the session. */
type PlacedMessage = Row & { isSteer: boolean; message: Message }

/**
 * The latest messages of a conversation, oldest first; `rows` is null if there are none. `isWhole`: they reach back to
 * the beginning. `isSettled`: all earlier turns have ended, so their messages never change. `leftOutBytes` counts the
 * bytes of their images that were not read.
 */
export type ConversationPage = { rows: Row[] | null; isWhole: boolean; isSettled: boolean; leftOutBytes: number }

/** Size limit of a page as stored, compressed. Postgres can build such pages, and a process can hold them. */
const PAGE_BYTES = 512 * 1024
/** Size limit of a conversation, several times any model's context. Older messages are not read. */
export const MAX_CONVERSATION_BYTES = 32 * 1024 * 1024
const END = 2 ** 31 - 1

/** A place in a conversation. Turns follow in the order of their messages, and each is complete before the next. */
type MessagePosition = { inputSequence: number; sequence: number }

/**
 * Part of a conversation: events before sequence `before`, of turns whose message has sequence `since` or later. Of the
 * messages that joined the last turn, those up to `steeredThrough`.
 */
export type Part = { before?: number | undefined; since?: number | undefined; steeredThrough?: number | undefined }

/** SQL for the data read of a message, and for the number of omitted bytes. */
type Fields = { data: Prisma.Sql; leftOutBytes: Prisma.Sql }

const WHOLE: Fields = { data: Prisma.sql`data`, leftOutBytes: Prisma.sql`0` }

/** SQL for the content parts of a message or of a tool's result. */
const CONTENT = Prisma.sql`coalesce(data #> '{message,content}', data -> 'result')`

/** SQL equivalent of `withoutImages`, so that Postgres does not send the images. */
const WITHOUT_IMAGES: Fields = {
  data: Prisma.sql`CASE WHEN ${CONTENT} @? '$[*] ? (@.type == "image" && @.base64 > "")' THEN jsonb_set(
    data,
    CASE type WHEN 'tool.completed' THEN '{result}'::text[] ELSE '{message,content}'::text[] END,
    (SELECT jsonb_agg(
      CASE WHEN part @@ '$.type == "image" && $.base64 > ""' THEN part || '{"base64": null}' ELSE part END ORDER BY place
    ) FROM jsonb_array_elements(${CONTENT}) WITH ORDINALITY AS parts (part, place))
  ) ELSE data END`,
  leftOutBytes: Prisma.sql`(SELECT coalesce(sum(octet_length(image #>> '{}')), 0)
    FROM jsonb_path_query(${CONTENT}, '$[*] ? (@.type == "image").base64') AS image)`,
}

/**
 * Returns SQL for a page of a turn's conversation, as one JSON value: earlier turns whole, then the turn's own message
 * and events. Messages queued behind the turn are excluded. `from` restricts the page to earlier events.
 */
export const conversationSql = (
  turnId: string,
  { before = END, since = 0 }: Part = {},
  { data, leftOutBytes }: Fields = WHOLE,
  from?: MessagePosition,
): Prisma.Sql =>
  Prisma.sql`(
  SELECT json_build_object(
    'rows', json_agg(json_build_object(
      'sequence', sequence, 'type', type, 'ts', ts, 'turnId', turn_id, 'step', step, 'inputSequence', input_sequence,
      'data', ${data}
    ) ORDER BY input_sequence, sequence) FILTER (WHERE bytes_behind < ${PAGE_BYTES}),
    'isWhole', coalesce(bool_and(bytes_behind < ${PAGE_BYTES}), true),
    'isSettled', coalesce(bool_and(is_settled), false),
    'leftOutBytes', coalesce(sum(${leftOutBytes}) FILTER (WHERE bytes_behind < ${PAGE_BYTES}), 0)
  )
  FROM (
    SELECT e.*, earlier.input_sequence, earlier.id = own.id OR earlier.finished_at IS NOT NULL AS is_settled,
      sum(pg_column_size(e.data)) OVER newest_first - pg_column_size(e.data) AS bytes_behind
    FROM turns own
    JOIN turns earlier ON earlier.session_id = own.session_id
      AND earlier.input_sequence BETWEEN ${since} AND own.input_sequence
    JOIN events e ON e.turn_id = earlier.id AND e.sequence < ${before}
      AND e.type IN ('input.message', 'output.message.completed', 'tool.completed')
    WHERE own.id = ${turnId}::uuid ${from === undefined ? Prisma.empty : isBefore(from)}
    WINDOW newest_first AS (ORDER BY earlier.input_sequence DESC, e.sequence DESC)
  ) AS message
)`

const isBefore = ({ inputSequence, sequence }: MessagePosition): Prisma.Sql =>
  Prisma.sql`AND (earlier.input_sequence, e.sequence) < (${inputSequence}, ${sequence})`

/**
 * Reads a model call's conversation, without the bytes of images. A conversation beyond MAX_CONVERSATION_BYTES loses
 * its beginning.
 */
export async function readConversation(
  deps: Deps,
  sessionId: string,
  turnId: string,
  part: Part = {},
): Promise<Message[]> {
  const latest = await readPage(deps, conversationSql(turnId, part, WITHOUT_IMAGES))
  const { rows } = await readRows(deps, { turnId, part, fields: WITHOUT_IMAGES }, latest)
  const { steeredThrough = END } = part
  const isRead = (row: Row) => !isSteer(row) || row.turnId !== turnId || row.sequence <= steeredThrough
  return fromSummary(withoutRequests(rows.filter(isRead), turnId).map((row) => toMessage(row, sessionId)))
}

type Reading = { turnId: string; part: Part; fields?: Fields }

/** Reads on from the latest page towards the beginning. A partial conversation begins with a user's message. */
export async function readRows(
  deps: Deps,
  reading: Reading,
  latest: ConversationPage,
): Promise<{ rows: Row[]; isWhole: boolean }> {
  const { turnId, fields = WHOLE } = reading
  const { rows, isWhole } = await readOn(deps, { ...reading, fields }, latest)
  return { rows: isWhole ? rows : fromMessage(rows, turnId, await readPage(deps, inputSql(turnId, fields))), isWhole }
}

/**
 * Reads the conversation for all model calls of one page of events, whose inputs were nearly the same. It is read once,
 * for the last turn; the returned function selects each call's part, without the bytes of images. Undefined if the
 * conversation exceeds MAX_CONVERSATION_BYTES.
 */
export async function readConversations(
  deps: Deps,
  sessionId: string,
  lastTurnId: string,
  part: Part,
): Promise<((turnId: string, part: Part) => Message[]) | undefined> {
  const latest = await readPage(deps, conversationSql(lastTurnId, part, WITHOUT_IMAGES))
  const reading = { turnId: lastTurnId, part, fields: WITHOUT_IMAGES }
  const { rows, isWhole } = await readOn(deps, reading, latest)
  if (!isWhole) return undefined
  const placed: PlacedMessage[] = rows.map((row) => ({
    ...row,
    isSteer: isSteer(row),
    message: toMessage(row, sessionId),
  }))
  return (turnId, { before = END, since = 0, steeredThrough = END }) => {
    const own = placed.find((one) => one.turnId === turnId)?.inputSequence ?? 0
    const isRead = (one: PlacedMessage) => !one.isSteer || one.turnId !== turnId || one.sequence <= steeredThrough
    const part = placed.filter(
      (one) => one.inputSequence >= since && one.inputSequence <= own && one.sequence < before && isRead(one),
    )
    return fromSummary(withoutRequests(part, turnId).map(({ message }) => message))
  }
}

async function readOn(deps: Deps, { turnId, part, fields }: Required<Reading>, latest: ConversationPage) {
  const pages: ConversationPage[] = []
  let oldest = latest
  for (let bytes = 0; !oldest.isWhole; ) {
    bytes += sizeOf(oldest)
    const place = oldest.rows?.[0]
    if (place === undefined || bytes > MAX_CONVERSATION_BYTES) break
    pages.unshift(oldest)
    oldest = await readPage(deps, conversationSql(turnId, part, fields, place))
  }
  return { rows: placeSteers([oldest, ...pages].flatMap((page) => page.rows ?? [])), isWhole: oldest.isWhole }
}

export const toMessage = (row: Row, sessionId: string): Message =>
  presentMessage({ ...row, execId: null, ts: new Date(row.ts), sessionId })

export async function readPage(deps: Deps, page: Prisma.Sql): Promise<ConversationPage> {
  const rows = await deps.db.$queryRaw<{ page: ConversationPage }[]>`SELECT ${page} AS page`
  return rows[0]?.page ?? { rows: null, isWhole: true, isSettled: false, leftOutBytes: 0 }
}

/** Makes a truncated conversation start with a user's message, at the latest the turn's own. */
function fromMessage(rows: Row[], turnId: string, input: ConversationPage): Row[] {
  const start = rows.findIndex(({ type, step }) => type === 'input.message' && step === '')
  return start < 0 ? [...(input.rows ?? []), ...rows.filter((row) => row.turnId === turnId)] : rows.slice(start)
}

const inputSql = (turnId: string, { data }: Fields): Prisma.Sql =>
  Prisma.sql`(
    SELECT json_build_object('isWhole', true, 'isSettled', false, 'leftOutBytes', 0, 'rows', json_agg(json_build_object(
      'sequence', sequence, 'type', type, 'ts', ts, 'turnId', turn_id, 'step', step, 'inputSequence', sequence,
      'data', ${data}
    )))
    FROM events WHERE turn_id = ${turnId}::uuid AND type = 'input.message' AND step = ''
  )`

/** Returns the size of the page with its images, so that a model call's exact input can be read again. */
const sizeOf = ({ rows, leftOutBytes }: ConversationPage): number => JSON.stringify(rows ?? []).length + leftOutBytes

/**
 * Removes the bytes of images from a message. The events of their own messages have them; repeated for each model call,
 * they would make up most of a session.
 */
export const withoutImages = (message: Message): Message => ({
  ...message,
  content: message.content.map((part) => (part.type === 'image' && part.base64 ? { ...part, base64: null } : part)),
})
