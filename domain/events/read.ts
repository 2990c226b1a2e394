import type { EventType, WireEvent } from '../../contract/events.ts'
import type { Message } from '../../contract/messages.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { messageTypes, presentEvent, presentMessage, type ReadParts, type StoredEvent } from './present.ts'

/** Which events a reader wants; undefined: all. */
export type EventFilter = { types?: EventType[] | undefined; exclude?: EventType[] | undefined }

export const wants = (filter: EventFilter, type: string): boolean =>
  (filter.types === undefined || filter.types.includes(type as EventType)) &&
  !(filter.exclude?.includes(type as EventType) ?? false)

/** An event and the uuid of its turn, which the context of input.message does not name. */
export type ReadEvent = { event: WireEvent; turnId: string }
/** `through`: everything up to this sequence has been read; undefined when the session is gone. */
export type EventPage = { events: ReadEvent[]; through: number | undefined }
export type EventReader = (after: number, limit: number) => Promise<EventPage>

type Row = Omit<StoredEvent, 'sessionId'>

/**
 * Reads a session's events in order, page by page. One reader serves one pass from old to new: it remembers the
 * text of unfinished messages, so that `accumulated` costs nothing extra from page to page.
 */
export function createEventReader(deps: Deps, sessionId: string, filter: EventFilter = {}): EventReader {
  const texts = new Map<string, string>()
  let position: number | undefined

  const partsOf = async (event: StoredEvent): Promise<ReadParts> => {
    if (event.type === 'output.message.delta' || event.type === 'reason.thinking.delta') {
      const key = `${event.execId}/${event.type}`
      const before = texts.get(key) ?? (await textBefore(deps, event))
      const accumulated = before + String(event.data.delta)
      texts.set(key, accumulated)
      return { accumulated }
    }
    if (event.type === 'output.message.started') {
      texts.set(`${event.execId}/output.message.delta`, '')
      texts.set(`${event.execId}/reason.thinking.delta`, '')
    }
    if (event.type === 'output.message.completed') texts.clear()
    if (event.type === 'llm.generation') return { messages: await messagesBefore(deps, event) }
    return {}
  }

  return async (after, limit) => {
    // Between two reads the follower may have gone on live; what is remembered is then out of date.
    if (after !== position) texts.clear()
    const through = await lastSequence(deps, sessionId)
    if (through === undefined || through <= after) return { events: [], through }
    const rows = await readRows(deps, sessionId, after, through, limit, filter)
    const events: ReadEvent[] = []
    for (const row of rows) {
      const stored = { ...row, sessionId }
      events.push({ event: presentEvent(deps.eventIds, stored, await partsOf(stored)), turnId: row.turnId })
    }
    position = rows.length === limit ? rows.at(-1)?.sequence : through
    return { events, through: position }
  }
}

async function lastSequence(deps: Deps, sessionId: string): Promise<number | undefined> {
  const session = await deps.db.session.findUnique({ where: { id: sessionId }, select: { lastSequence: true } })
  return session?.lastSequence
}

/** Appends of a session are in order of commit, so everything up to `through` is there to be read. */
function readRows(deps: Deps, sessionId: string, after: number, through: number, limit: number, filter: EventFilter) {
  return deps.db.$queryRaw<Row[]>`
    SELECT sequence, type, ts, turn_id AS "turnId", step, exec_id AS "execId", data FROM events
    WHERE session_id = ${sessionId}::uuid AND sequence > ${after} AND sequence <= ${through}
      AND (${filter.types ?? null}::text[] IS NULL OR type = ANY (${filter.types ?? null}::text[]))
      AND (${filter.exclude ?? null}::text[] IS NULL OR type <> ALL (${filter.exclude ?? null}::text[]))
    ORDER BY sequence LIMIT ${limit}`
}

/** The text of a message before this delta, for a reader that begins in its middle. */
async function textBefore(deps: Deps, event: StoredEvent): Promise<string> {
  const rows = await deps.db.$queryRaw<{ text: string | null }[]>`
    SELECT string_agg(data ->> 'delta', '' ORDER BY sequence) AS text FROM events
    WHERE session_id = ${event.sessionId}::uuid AND sequence < ${event.sequence}
      AND turn_id = ${event.turnId}::uuid AND type = ${event.type} AND exec_id = ${event.execId}::uuid`
  return rows[0]?.text ?? ''
}

/** What the model call of an llm.generation was given: nothing is stored twice for it. */
async function messagesBefore(deps: Deps, event: StoredEvent): Promise<Message[]> {
  const conversation = conversationSql(event.turnId, event.sequence)
  const rows = await deps.db.$queryRaw<{ conversation: ConversationRow[] }[]>`SELECT ${conversation} AS conversation`
  return presentConversation(rows[0]?.conversation ?? [], event.sessionId)
}

type ConversationRow = Omit<Row, 'ts'> & { ts: string }

/**
 * The conversation as a turn sees it, as one JSON value, oldest first: earlier turns whole, then its own message and
 * what came of it before sequence `before`. Messages that queue behind the turn are not in it.
 */
export const conversationSql = (turnId: string, before = 2 ** 31 - 1): Prisma.Sql => Prisma.sql`(
  SELECT jsonb_agg(jsonb_build_object(
    'sequence', e.sequence, 'type', e.type, 'ts', e.ts, 'turnId', e.turn_id, 'step', e.step, 'data', e.data
  ) ORDER BY earlier.input_sequence, e.sequence)
  FROM turns own
  JOIN turns earlier ON earlier.session_id = own.session_id AND earlier.input_sequence <= own.input_sequence
  JOIN events e ON e.session_id = own.session_id AND e.turn_id = earlier.id AND e.sequence < ${before}
    AND e.type IN ('input.message', 'output.message.completed', 'tool.completed')
  WHERE own.id = ${turnId}::uuid
)`

export const presentConversation = (rows: ConversationRow[], sessionId: string): Message[] =>
  rows.map((row) => presentMessage({ ...row, ts: new Date(row.ts), sessionId }))
export type { ConversationRow }

/** All messages of a session, newest first unless `order` says otherwise. */
export async function readMessages(
  deps: Deps,
  sessionId: string,
  page: { order: 'asc' | 'desc'; limit?: number | undefined; offset: number },
): Promise<Message[]> {
  const rows = await deps.db.event.findMany({
    where: { sessionId, type: { in: [...messageTypes] } },
    orderBy: { sequence: page.order },
    skip: page.offset,
    ...(page.limit === undefined ? {} : { take: page.limit }),
  })
  // Only the append functions write events, and the query names the three types.
  return rows.map((row) => presentMessage(row as StoredEvent))
}
