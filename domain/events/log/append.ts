import type { EventType, WireEvent } from '../../../contract/events.ts'
import type { CallSecretKind, Prisma } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { publishEvents } from '../live/live-stream.ts'
import { type Announcement, announces } from './announcements.ts'
import { presentEvent, type ReadParts, type StoredEvent } from './present.ts'
import { type Recorded, recordAppend, type StoredAppend } from './record.ts'

/**
 * Event to record. `parts` is only for live readers; later readers compute it. `secrets` has encrypted values (base64)
 * that the event omits. The same transaction records them in call_secrets.
 */
export type NewEvent = {
  type: EventType
  step?: string
  execId?: string
  data: Record<string, unknown>
  parts?: ReadParts
  secrets?: { step: string; kind: CallSecretKind; value: string }[]
}

/** Writer of events. `fence` orders the attempts of a step; see turn_steps in prisma/schema.prisma. */
export type Writer = {
  sessionId: string
  turnId: string
  attempt?: { step: string; fence: number }
}

export type Appended =
  /**
   * `events` are the newly recorded events, `at` is their time. `claims` is the number of attempts of the step so far.
   * `nextTurnId` is the next turn, if this one has ended.
   */
  | { outcome: 'appended'; events: WireEvent[]; at: Date; claims: number; nextTurnId: string | null }
  | { outcome: 'turn_ended'; nextTurnId: string | null }
  /** An earlier turn of the session is unfinished. */
  | { outcome: 'not_next' }
  | { outcome: 'fenced' }
  /** A message has joined the turn that the answer has not read, so the turn does not end with it. */
  | { outcome: 'steered' }
  | { outcome: 'session_gone' }

/** Types of events that may be recorded in one statement for several sessions: they end nothing and cost nothing. */
const SHARING: ReadonlySet<EventType> = new Set<EventType>([
  'session.started',
  'session.activated',
  'turn.started',
  'act.completed',
  'reason.started',
  'reason.thinking.started',
  'reason.thinking.delta',
  'reason.thinking.completed',
  'output.message.started',
  'output.message.delta',
  'tool.progress',
])
/** Maximum length of an append that may share its statement. */
const MAX_SHARED_LENGTH = 64 * 1024

/**
 * Records events and the state that they announce in one transaction, then publishes them to the live stream. May be
 * repeated: an event that the turn already has is not recorded again. Does not throw when the writer has lost its right
 * to write; the outcome says so. Under load, claims of steps and deltas are committed in groups.
 */
export async function appendEvents(deps: Deps, writer: Writer, events: NewEvent[]): Promise<Appended> {
  const append = toStoredAppend(deps, writer, events)
  const recorded = await (mayShare(append, events) ? deps.events.groups(append) : recordAppend(deps.db, append))
  const appended = toAppended(deps, writer, events, recorded)
  if (appended.outcome === 'appended') publishEvents(deps, writer.sessionId, writer.turnId, appended.events)
  return appended
}

/** Records events like `appendEvents`, in the caller's transaction. The caller publishes them after the commit. */
export async function recordEvents(
  deps: Deps,
  db: Prisma.TransactionClient,
  writer: Writer,
  events: NewEvent[],
): Promise<Appended> {
  return toAppended(deps, writer, events, await recordAppend(db, toStoredAppend(deps, writer, events)))
}

function toStoredAppend(
  { attempts }: Pick<Deps, 'attempts'>,
  { sessionId, turnId, attempt }: Writer,
  events: NewEvent[],
): StoredAppend {
  const by = attempt === undefined ? NO_ATTEMPT : { ...attempt, process: attempts.process }
  return { sessionId, turnId, ...by, isDelta: attempt !== undefined && isDelta(events), events: toStored(events) }
}

const isDelta = ([event, ...more]: NewEvent[]): boolean =>
  more.length === 0 && (event?.type === 'output.message.delta' || event?.type === 'reason.thinking.delta')

const NO_ATTEMPT = { step: null, fence: null, process: null }

/**
 * Reports whether an append may share its statement: it belongs to an attempt that claims its step or writes deltas.
 */
const mayShare = (append: StoredAppend, events: NewEvent[]): boolean =>
  append.step !== null &&
  append.events.length <= MAX_SHARED_LENGTH &&
  events.every(({ type, secrets }) => SHARING.has(type) && secrets === undefined)

/** Events of a turn. */
export type TurnEvents = { sessionId: string; turnId: string; events: NewEvent[] }

/** Records events of several turns, in their order and in one round trip. */
export async function recordEventsOf(
  deps: Deps,
  db: Prisma.TransactionClient,
  turns: TurnEvents[],
): Promise<Appended[]> {
  const sessions = turns.map(({ sessionId }) => sessionId)
  const ids = turns.map(({ turnId }) => turnId)
  const stored = turns.map(({ events }) => toStored(events))
  const rows = await db.$queryRaw<{ result: Recorded }[]>`
    SELECT record_events(turn.session, turn.id, NULL, NULL, turn.events::jsonb) AS result
    FROM unnest(${sessions}::uuid[], ${ids}::uuid[], ${stored}::text[]) WITH ORDINALITY AS turn (session, id, events, place)
    ORDER BY turn.place`
  return turns.map((turn, index) => toAppended(deps, turn, turn.events, rows[index]?.result))
}

/** Returns the parameter p_events of record_events. */
export const toStored = (events: NewEvent[]): string =>
  JSON.stringify(
    events.map((event) => ({
      type: event.type,
      step: event.step,
      exec_id: event.execId,
      data: event.data,
      secrets: event.secrets,
      announces: toAnnounces(announces(event)),
    })),
  )

const toAnnounces = (announcement: Announcement) => ({
  session_status: announcement.sessionStatus,
  begins_session: announcement.beginsSession,
  output_preview: announcement.outputPreview,
  turn_status: announcement.turnStatus,
  begins_turn: announcement.beginsTurn,
  iterations: announcement.iterations,
  usage: announcement.usage,
  model: announcement.model,
  cost_usd: announcement.costUsd,
  error: announcement.failure?.error,
  error_code: announcement.failure?.code,
  finish_reason: announcement.finishReason,
  gives_output: announcement.givesOutput,
  answers_call: announcement.answersCall,
  notifies_workflow: announcement.notifiesWorkflow,
  steers: announcement.steers,
  steered_through: announcement.steeredThrough,
})

function toAppended(
  deps: Deps,
  writer: Writer,
  events: NewEvent[],
  row: Recorded = { outcome: 'session_gone' },
): Appended {
  const nextTurnId = row.next_turn_id ?? null
  if (row.outcome === 'turn_ended') return { outcome: 'turn_ended', nextTurnId }
  if (row.outcome !== 'appended') return { outcome: row.outcome }
  const at = new Date(row.ts ?? 0)
  const recorded = presentRecorded(deps, writer, events, row, at)
  return { outcome: 'appended', events: recorded, at, claims: row.claims ?? 0, nextTurnId }
}

function presentRecorded(deps: Deps, writer: Writer, events: NewEvent[], row: Recorded, ts: Date): WireEvent[] {
  return (row.events ?? []).flatMap(([ordinal, sequence]) => {
    const event = events[ordinal - 1]
    if (event === undefined) return []
    const stored: StoredEvent = {
      sessionId: writer.sessionId,
      sequence,
      type: event.type,
      ts,
      turnId: writer.turnId,
      step: event.step ?? '',
      execId: event.execId ?? null,
      data: event.data,
    }
    return [presentEvent(deps.events, stored, event.parts ?? {})]
  })
}
