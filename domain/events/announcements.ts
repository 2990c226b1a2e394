import type { TokenUsage } from '../../contract/common.ts'
import type { EventType } from '../../contract/events.ts'
import { type ContentPart, textOf } from '../../contract/messages.ts'
import { truncate } from '../../lib/truncate.ts'

/**
 * What a new event means for the state of its session and turn. `record_events` applies it under the session's lock;
 * prisma/functions/record_events.sql says how.
 */
export type Announcement = {
  /** An event that announces 'idle' is left out while another turn of the session is unfinished. */
  sessionStatus?: 'active' | 'waitingfortoolresults' | 'idle'
  /** Such an event is left out when the session has started before. */
  beginsSession?: true
  /** The beginning of the session's latest answer. */
  outputPreview?: string
  /** The last three end the turn. */
  turnStatus?: 'active' | 'waiting' | 'completed' | 'failed' | 'cancelled'
  beginsTurn?: true
  /** Model calls that the turn has begun, added to those before. */
  iterations?: number
  /** Tokens, added to those of turn, session and agent. */
  usage?: Required<{ [K in keyof TokenUsage]: number }>
  failure?: { error: string; code: string | undefined }
  /** A waiting turn goes on when no call is pending after this event. */
  answersCall?: true
  /** A turn that has begun owes its workflow a notice of this event. */
  notifiesWorkflow?: true
  /**
   * A step that is tried again tells it again. The unique index events_once exempts the type, so one more such type
   * needs a migration, which changes the index and the predicate in record_events.
   */
  mayRepeat?: true
}

/** The fields of events' data that announce something. */
type AnnouncingData = {
  message?: { content?: ContentPart[] }
  usage?: TokenUsage | null
  error?: string
  error_code?: string
}

type Rule = Announcement | ((data: AnnouncingData) => Announcement)

const NOTHING: Announcement = {}
const REPEATS: Announcement = { mayRepeat: true }

const rules: Record<EventType, Rule> = {
  // Recorded with its turn's row, past record_events.
  'input.message': NOTHING,
  'session.started': { beginsSession: true },
  'session.activated': { sessionStatus: 'active' },
  'session.idled': { sessionStatus: 'idle' },
  'turn.started': { turnStatus: 'active', beginsTurn: true },
  'turn.completed': { turnStatus: 'completed' },
  'turn.failed': ({ error, error_code }) => ({
    turnStatus: 'failed',
    ...(error === undefined ? {} : { failure: { error, code: error_code } }),
  }),
  // Who cancels a turn need not be its workflow.
  'turn.cancelled': { turnStatus: 'cancelled', notifiesWorkflow: true },
  'reason.started': { sessionStatus: 'active', turnStatus: 'active', iterations: 1 },
  'reason.completed': ({ usage }) => (usage ? { usage: completeUsage(usage) } : NOTHING),
  'reason.thinking.started': NOTHING,
  'reason.thinking.delta': REPEATS,
  'reason.thinking.completed': NOTHING,
  'output.message.started': REPEATS,
  'output.message.delta': REPEATS,
  'output.message.completed': ({ message }) => previewOf(message?.content ?? []),
  'act.started': NOTHING,
  'act.completed': NOTHING,
  // An approved call has tool.started before it runs.
  'tool.started': { answersCall: true },
  'tool.completed': { answersCall: true },
  'tool.call_requested': { sessionStatus: 'waitingfortoolresults', turnStatus: 'waiting' },
  'llm.generation': NOTHING,
}

export function announces({ type, data }: { type: EventType; data: Record<string, unknown> }): Announcement {
  // A type that a later release will have, as tests of older readers write it, announces nothing.
  const rule: Rule | undefined = rules[type]
  // Events are made by this service, with the data of their type.
  return typeof rule === 'function' ? rule(data as AnnouncingData) : (rule ?? NOTHING)
}

const completeUsage = (usage: TokenUsage): Required<Announcement>['usage'] => ({
  input_tokens: usage.input_tokens,
  output_tokens: usage.output_tokens,
  cache_read_tokens: usage.cache_read_tokens ?? 0,
  cache_creation_tokens: usage.cache_creation_tokens ?? 0,
})

/** An answer of nothing but tool calls leaves the preview as it is. */
const previewOf = (content: ContentPart[]): Announcement =>
  content.some(({ type }) => type === 'text') ? { outputPreview: truncate(textOf(content)) } : NOTHING
