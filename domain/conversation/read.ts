import type { Message } from '../../contract/messages.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { presentMessage, type StoredEvent } from '../events/present.ts'

type Row = Omit<StoredEvent, 'sessionId' | 'execId' | 'ts'> & { ts: string; inputSequence: number }

/** A message and the place of its turn in the session. */
type PlacedMessage = { inputSequence: number; turnId: string; sequence: number; message: Message }

/** The latest messages of a conversation, oldest first; null when it has none. `leftOutBytes`: of what was not read of them. */
export type ConversationPage = { rows: Row[] | null; isWhole: boolean; leftOutBytes: number }

/** As it is stored, so compressed: no page is too large for Postgres to put together, or for a process to hold. */
const PAGE_BYTES = 512 * 1024
/** Several times what any model takes; what is older is not even read. */
const MAX_CONVERSATION_BYTES = 32 * 1024 * 1024
const END = 2 ** 31 - 1

/** A place in a conversation: turns are in the order of their messages, and whole before the next begins. */
type Place = { inputSequence: number; sequence: number }

/** Of a conversation: what was recorded before sequence `before`, of turns whose message is not older than `since`. */
type Part = { before?: number | undefined; since?: number | undefined }

/** What is read of a message's data, and how many bytes are not. */
type Fields = { data: Prisma.Sql; leftOutBytes: Prisma.Sql }

const WHOLE: Fields = { data: Prisma.sql`data`, leftOutBytes: Prisma.sql`0` }

/** Of a message, or of a tool's result. */
const CONTENT = Prisma.sql`coalesce(data #> '{message,content}', data -> 'result')`

/** The same as withoutImages, so that Postgres need not send them. */
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
 * A page of the conversation as a turn sees it, as one JSON value: earlier turns whole, then its own message and what
 * came of it. Messages that queue behind the turn are not in it. `from`: only what stands before this place.
 */
export const conversationSql = (
  turnId: string,
  { before = END, since = 0 }: Part = {},
  { data, leftOutBytes }: Fields = WHOLE,
  from?: Place,
): Prisma.Sql =>
  Prisma.sql`(
  SELECT json_build_object(
    'rows', json_agg(json_build_object(
      'sequence', sequence, 'type', type, 'ts', ts, 'turnId', turn_id, 'step', step, 'inputSequence', input_sequence,
      'data', ${data}
    ) ORDER BY input_sequence, sequence) FILTER (WHERE bytes_behind < ${PAGE_BYTES}),
    'isWhole', coalesce(bool_and(bytes_behind < ${PAGE_BYTES}), true),
    'leftOutBytes', coalesce(sum(${leftOutBytes}) FILTER (WHERE bytes_behind < ${PAGE_BYTES}), 0)
  )
  FROM (
    SELECT e.*, earlier.input_sequence, sum(pg_column_size(e.data)) OVER newest_first - pg_column_size(e.data) AS bytes_behind
    FROM turns own
    JOIN turns earlier ON earlier.session_id = own.session_id
      AND earlier.input_sequence BETWEEN ${since} AND own.input_sequence
    JOIN events e ON e.turn_id = earlier.id AND e.sequence < ${before}
      AND e.type IN ('input.message', 'output.message.completed', 'tool.completed')
    WHERE own.id = ${turnId}::uuid ${from === undefined ? Prisma.empty : isBefore(from)}
    WINDOW newest_first AS (ORDER BY earlier.input_sequence DESC, e.sequence DESC)
  ) AS message
)`

const isBefore = ({ inputSequence, sequence }: Place): Prisma.Sql =>
  Prisma.sql`AND (earlier.input_sequence, e.sequence) < (${inputSequence}, ${sequence})`

/** The conversation that a model call was given, without the bytes of images. What is longer than a process should hold begins later. */
export async function readConversation(
  deps: Deps,
  sessionId: string,
  turnId: string,
  part: Part = {},
): Promise<Message[]> {
  const latest = await readPage(deps, conversationSql(turnId, part, WITHOUT_IMAGES))
  return complete(deps, { sessionId, turnId, part, fields: WITHOUT_IMAGES }, latest)
}

/** The conversation that a model is given: reads on from the latest page, towards the beginning. */
export const completeConversation = (
  deps: Deps,
  sessionId: string,
  turnId: string,
  part: Part,
  latest: ConversationPage,
): Promise<Message[]> => complete(deps, { sessionId, turnId, part, fields: WHOLE }, latest)

type Reading = { sessionId: string; turnId: string; part: Part; fields: Fields }

async function complete(deps: Deps, reading: Reading, latest: ConversationPage): Promise<Message[]> {
  const { sessionId, turnId, fields } = reading
  const { rows, isWhole } = await readOn(deps, reading, latest)
  const kept = isWhole ? rows : fromMessage(rows, turnId, await readPage(deps, inputSql(turnId, fields)))
  return kept.map((row) => toMessage(row, sessionId))
}

/**
 * The same for the model calls of one page of events, which are given nearly the same conversation: it is read once, for
 * the last of them, and each gets its part, without the bytes of images. Undefined when it is longer than a process should hold.
 */
export async function readConversations(
  deps: Deps,
  sessionId: string,
  lastTurnId: string,
  part: Part,
): Promise<((turnId: string, part: Part) => Message[]) | undefined> {
  const latest = await readPage(deps, conversationSql(lastTurnId, part, WITHOUT_IMAGES))
  const reading = { sessionId, turnId: lastTurnId, part, fields: WITHOUT_IMAGES }
  const { rows, isWhole } = await readOn(deps, reading, latest)
  if (!isWhole) return undefined
  const placed: PlacedMessage[] = rows.map((row) => ({
    inputSequence: row.inputSequence,
    turnId: row.turnId,
    sequence: row.sequence,
    message: toMessage(row, sessionId),
  }))
  return (turnId, { before = END, since = 0 }) => {
    const own = placed.find((one) => one.turnId === turnId)?.inputSequence ?? 0
    return placed
      .filter((one) => one.inputSequence >= since && one.inputSequence <= own && one.sequence < before)
      .map(({ message }) => message)
  }
}

async function readOn(deps: Deps, { turnId, part, fields }: Reading, latest: ConversationPage) {
  const pages: ConversationPage[] = []
  let oldest = latest
  for (let bytes = 0; !oldest.isWhole; ) {
    bytes += sizeOf(oldest)
    const place = oldest.rows?.[0]
    if (place === undefined || bytes > MAX_CONVERSATION_BYTES) break
    pages.unshift(oldest)
    oldest = await readPage(deps, conversationSql(turnId, part, fields, place))
  }
  return { rows: [oldest, ...pages].flatMap((page) => page.rows ?? []), isWhole: oldest.isWhole }
}

const toMessage = (row: Row, sessionId: string): Message =>
  presentMessage({ ...row, execId: null, ts: new Date(row.ts), sessionId })

async function readPage(deps: Deps, page: Prisma.Sql): Promise<ConversationPage> {
  const rows = await deps.db.$queryRaw<{ page: ConversationPage }[]>`SELECT ${page} AS page`
  return rows[0]?.page ?? { rows: null, isWhole: true, leftOutBytes: 0 }
}

/** What does not begin with the beginning begins with somebody's message, at the latest with the turn's own. */
function fromMessage(rows: Row[], turnId: string, input: ConversationPage): Row[] {
  const start = rows.findIndex(({ type }) => type === 'input.message')
  return start < 0 ? [...(input.rows ?? []), ...rows.filter((row) => row.turnId === turnId)] : rows.slice(start)
}

const inputSql = (turnId: string, { data }: Fields): Prisma.Sql =>
  Prisma.sql`(
    SELECT json_build_object('isWhole', true, 'leftOutBytes', 0, 'rows', json_agg(json_build_object(
      'sequence', sequence, 'type', type, 'ts', ts, 'turnId', turn_id, 'step', step, 'inputSequence', sequence,
      'data', ${data}
    )))
    FROM events WHERE turn_id = ${turnId}::uuid AND type = 'input.message'
  )`

/** As large as it would be whole: what a model call was given is read, and no more. */
const sizeOf = ({ rows, leftOutBytes }: ConversationPage): number => JSON.stringify(rows ?? []).length + leftOutBytes

/** The bytes of images are in the events of their own messages; with each model call again they would be most of a session. */
export const withoutImages = (message: Message): Message => ({
  ...message,
  content: message.content.map((part) => (part.type === 'image' && part.base64 ? { ...part, base64: null } : part)),
})
