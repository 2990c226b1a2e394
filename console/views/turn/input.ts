import type { Event, Message } from 'agent-session-client'
import { stepOf } from './rows.ts'
import type { Span } from './spans.ts'

export type Generation = Extract<Event, { type: 'llm.generation' }>
export type Answer = Extract<Event, { type: 'output.message.completed' }>

/** Events of a model call's step: of all its attempts. */
export const eventsOfStep = (spans: Span[], key: string): Event[] =>
  spans.filter((span) => stepOf(span.key) === stepOf(key)).flatMap(({ events }) => events)

/**
 * Returns the index of the first message that the model call before had not read: the answer whose calls the last results
 * belong to, or else the message after the last answer.
 */
export function newFrom(messages: Pick<Message, 'role'>[]): number {
  const answer = messages.findLastIndex(({ role }) => role === 'agent')
  const hasResults = messages[answer + 1]?.role === 'tool_result'
  return Math.max(0, hasResults ? answer : answer + 1)
}
