import type { Message } from '../../contract/messages.ts'
import { Prisma } from '../../prisma/generated/client.ts'
import { applyCompaction, patchDanglingCalls, type Thresholds } from '../conversation/compaction.ts'
import { readConversation, readConversations, withoutImages } from '../conversation/read.ts'
import type { Deps } from '../deps.ts'
import { notFound } from '../errors.ts'
import { isFull, type SizedRow } from '../page-by-size.ts'
import { type EventFilter, wantedTypes } from './filter.ts'
import { EVENT_COLUMNS, sizedEventsSql } from './page-sql.ts'
import type { StoredEvent } from './present.ts'

export type Row = Omit<StoredEvent, 'sessionId'>

/** One look at the record: appends of a session are in order of commit, so everything up to `through` is there. */
export type EventRows = {
  rows: Row[]
  /** The session's last sequence; undefined when the session is gone. */
  through: number | undefined
  /** There may be more than these rows. */
  hasMore: boolean
  /** There are, up to the limit: these rows are large. */
  isFull: boolean
  /** What the model call was given that one of the rows tells of, as a JSON array: much of it is in every call. */
  inputOf(call: Row): Promise<string>
}

type FoundRow = Row & SizedRow & { through: number }

/** The events after sequence `after`, at most `limit`, and no more than fit into a look. */
export async function readEventRows(
  deps: Deps,
  sessionId: string,
  after: number,
  limit: number,
  filter: EventFilter,
): Promise<EventRows> {
  const events = Prisma.sql`
    SELECT ${EVENT_COLUMNS} FROM events
    WHERE session_id = s.id AND sequence > ${after}
      AND type = ANY (${wantedTypes(filter)}::text[])
      AND (${filter.turnId ?? null}::uuid IS NULL OR turn_id = ${filter.turnId ?? null}::uuid)
    ORDER BY sequence LIMIT ${limit}`
  const found = await deps.db.$queryRaw<FoundRow[]>`
    SELECT s.last_sequence AS through, page.* FROM sessions s LEFT JOIN LATERAL ${sizedEventsSql(events)} AS page ON true
    WHERE s.id = ${sessionId}::uuid ORDER BY page.sequence`
  // A session without such events gives one row, without an event.
  const rows = found.filter((row) => row.sequence !== null)
  return {
    rows,
    through: found[0]?.through,
    hasMore: isFull(found) || rows.length === limit,
    isFull: isFull(found),
    inputOf: readInputs(deps, sessionId, rows),
  }
}

/**
 * The text of a message before this delta, for a reader that begins in its middle. A message's deltas are deleted all at
 * once, so the text is whole while this one is there.
 */
export async function textBefore(deps: Deps, event: StoredEvent): Promise<string | undefined> {
  const rows = await deps.db.$queryRaw<{ text: string | null; isThere: boolean | null }[]>`
    SELECT string_agg(data ->> 'delta', '' ORDER BY sequence) FILTER (WHERE sequence < ${event.sequence}) AS text,
      bool_or(sequence = ${event.sequence}) AS "isThere" FROM events
    WHERE session_id = ${event.sessionId}::uuid AND sequence <= ${event.sequence}
      AND sequence > (SELECT input_sequence FROM turns WHERE id = ${event.turnId}::uuid)
      AND turn_id = ${event.turnId}::uuid AND type = ${event.type} AND exec_id = ${event.execId}::uuid`
  return rows[0]?.isThere ? (rows[0].text ?? '') : undefined
}

/**
 * What the model calls among the rows were given: nothing is stored twice for it. It is read for the last of them when
 * the first is asked for; the others were given parts of it.
 */
function readInputs(deps: Deps, sessionId: string, rows: Row[]): EventRows['inputOf'] {
  const calls = rows.filter(({ type }) => type === 'llm.generation')
  const last = calls.at(-1)
  if (last === undefined) return async () => '[]'
  const since = Math.min(...calls.map((call) => partOf(call).since))
  let reading: ReturnType<typeof readConversations> | undefined
  const toText = rememberTexts()
  return async (call) => {
    const part = partOf(call)
    reading ??= readConversations(deps, sessionId, last.turnId, { before: last.sequence, since })
    const conversation = (await reading)?.(call.turnId, part)
    const messages = patchDanglingCalls(conversation ?? (await readConversation(deps, sessionId, call.turnId, part)))
    // A call was given one message at least. They go with their session.
    if (messages.length === 0) throw notFound('Session')
    const thresholds = thresholdsOf(call)
    const given = thresholds === undefined ? messages : applyCompaction(messages, thresholds)
    return `[${given.map(toText).join(',')}]`
  }
}

/** A message is written out once for all calls that were given it. */
function rememberTexts(): (message: Message) => string {
  const texts = new WeakMap<Message, string>()
  return (message) => {
    const known = texts.get(message)
    if (known !== undefined) return known
    const text = JSON.stringify(withoutImages(message))
    texts.set(message, text)
    return text
  }
}

/** Written with the event, by the call that it tells of. */
const thresholdsOf = ({ data }: Row): Thresholds | undefined => data.thresholds as Thresholds | undefined

/** What is dropped are whole exchanges, and one begins with its turn's message. */
const partOf = (call: Row) => ({ before: call.sequence, since: thresholdsOf(call)?.droppedBefore ?? 0 })
