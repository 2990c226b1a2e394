import type { EventType } from '../../../contract/events.ts'
import type { TokenUsage } from '../../../contract/kit/common.ts'
import { type ContentPart, textOf } from '../../../contract/messages.ts'
import { truncate } from '../../../lib/truncate.ts'

/**
 * Effect of a new event on the state of its session and turn. `record_events` applies it under the session's lock;
 * prisma/functions/record_events.sql describes how.
 */
export type Announcement = {
  /**
   * New status of the session. An event that announces 'idle' is not recorded while another turn of the session is
   * unfinished.
   */
  sessionStatus?: 'active' | 'waitingfortoolresults' | 'idle'
  /** Marks the session as started. The event is not recorded if the session has started before. */
  beginsSession?: true
  /** Beginning of the session's latest answer. */
  outputPreview?: string
  /** New status of the turn; the last three end it. */
  turnStatus?: 'active' | 'waiting' | 'completed' | 'failed' | 'cancelled'
  beginsTurn?: true
  /** Number of model calls begun, added to the turn's count. */
  iterations?: number
  /** Number of tokens used, added to the totals of the turn, the session and the agent. */
  usage?: Required<{ [K in keyof TokenUsage]: number }>
  /**
   * Cost of a model call in USD, a decimal string, added to the totals of the turn, the session and the agent. Null if
   * the price is unknown, which makes the totals null.
   */
  costUsd?: string | null
  /** Name of the model that was called. */
  model?: string
  /** Reason for the end of the turn's answer, if it did not end by itself. */
  finishReason?: string
  /** The event's data has the turn's output. */
  givesOutput?: true
  failure?: { error: string; code: string | undefined }
  /** Lets a waiting turn continue if no call is pending after this event. */
  answersCall?: true
  /** Marks a message that joins the turn. Model calls that began before have not read it. */
  steers?: true
  /** Sequence of the last such message that the answer has read, or 0. A turn with a later one does not end with this event. */
  steeredThrough?: number
  /** Requires a notice of this event to the workflow of a turn that has begun. */
  notifiesWorkflow?: true
  /**
   * Allows a retried step to record the event again. The unique index events_once exempts the type. Another such type
   * needs a migration that changes the index and the predicate in record_events.
   */
  mayRepeat?: true
}

/** Fields of event data that announcements are made from. */
type AnnouncingData = {
  message?: { content?: ContentPart[]; metadata?: { summary?: boolean } }
  usage?: TokenUsage | null
  metadata?: { cost_usd?: string | null; model?: string }
  error?: string
  error_code?: string
  finish_reason?: string
  output?: object
  steered_through?: number
}

type Rule = Announcement | ((data: AnnouncingData) => Announcement)

const NOTHING: Announcement = {}
const REPEATS: Announcement = { mayRepeat: true }

const rules: Record<EventType, Rule> = {
  // Only a message that joins a turn: one with a turn of its own is recorded with its row, not by record_events.
  'input.message': { steers: true },
  'session.started': { beginsSession: true },
  'session.activated': { sessionStatus: 'active' },
  'session.idled': { sessionStatus: 'idle' },
  'session.compacted': NOTHING,
  'turn.started': { turnStatus: 'active', beginsTurn: true },
  'turn.completed': ({ finish_reason, output, steered_through = 0 }) => ({
    turnStatus: 'completed',
    steeredThrough: steered_through,
    ...(finish_reason === undefined ? {} : { finishReason: finish_reason }),
    ...(output === undefined ? {} : { givesOutput: true }),
  }),
  'turn.failed': ({ error, error_code }) => ({
    turnStatus: 'failed',
    ...(error === undefined ? {} : { failure: { error, code: error_code } }),
  }),
  // A turn may be cancelled by something other than its workflow.
  'turn.cancelled': { turnStatus: 'cancelled', notifiesWorkflow: true },
  'reason.started': { sessionStatus: 'active', turnStatus: 'active', iterations: 1 },
  'reason.completed': ({ usage }) => (usage ? { usage: completeUsage(usage) } : NOTHING),
  'reason.retrying': NOTHING,
  'reason.thinking.started': NOTHING,
  'reason.thinking.delta': REPEATS,
  'reason.thinking.completed': NOTHING,
  'output.message.started': REPEATS,
  'output.message.delta': REPEATS,
  'output.message.completed': ({ message }) =>
    message?.metadata?.summary ? NOTHING : previewOf(message?.content ?? []),
  'act.started': NOTHING,
  'act.completed': NOTHING,
  // An approved call has tool.started before it runs.
  'tool.started': { answersCall: true },
  'tool.progress': NOTHING,
  'tool.completed': { answersCall: true },
  'tool.call_requested': { sessionStatus: 'waitingfortoolresults', turnStatus: 'waiting' },
  'llm.generation': ({ metadata: { cost_usd, model } = {} }) =>
    cost_usd === undefined ? NOTHING : { costUsd: cost_usd, ...(model === undefined ? {} : { model }) },
}

export function announces({ type, data }: { type: EventType; data: Record<string, unknown> }): Announcement {
  // Undefined for an event type of a later release, which announces nothing.
  const rule: Rule | undefined = rules[type]
  // Only this service creates events, with the data of their type.
  return typeof rule === 'function' ? rule(data as AnnouncingData) : (rule ?? NOTHING)
}

const completeUsage = (usage: TokenUsage): Required<Announcement>['usage'] => ({
  input_tokens: usage.input_tokens,
  output_tokens: usage.output_tokens,
  cache_read_tokens: usage.cache_read_tokens ?? 0,
  cache_creation_tokens: usage.cache_creation_tokens ?? 0,
})

/** Returns the preview of an answer. An answer with only tool calls does not change the preview. */
const previewOf = (content: ContentPart[]): Announcement =>
  content.some(({ type }) => type === 'text') ? { outputPreview: truncate(textOf(content)) } : NOTHING
