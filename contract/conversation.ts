import { z } from 'zod'
import { listOf } from './common.ts'
import { defineEndpoint, type Endpoint } from './endpoint.ts'
import { Event, type EventType, eventTypes } from './events.ts'
import { SessionPathId } from './ids.ts'
import { CreateMessageRequest, Message } from './messages.ts'
import { offset, repeated } from './query.ts'
import { Turn } from './turns.ts'

const params = z.object({ session_id: SessionPathId })

/** The answer to `?wait`: `output` is the turn's last agent message, null when there is none. */
const WaitedTurn = z.object({ message: Message, turn: Turn, output: Message.nullish() }).meta({ id: 'WaitedTurn' })
export const MAX_WAIT_SECONDS = 600

const MAX_TYPES = 25
const eventType = z.string().transform((type, context): EventType => {
  const known = eventTypes.find((candidate) => candidate === type)
  if (known !== undefined) return known
  context.issues.push({ code: 'custom', input: type, message: `unknown event type "${type.slice(0, 64)}"` })
  return z.NEVER
})

export const eventFilter = {
  types: repeated(eventType, MAX_TYPES).meta({
    type: 'array',
    items: { type: 'string' },
    description: 'Only these types; repeat the key.',
  }),
  exclude: repeated(eventType, MAX_TYPES).meta({
    type: 'array',
    items: { type: 'string' },
    description: 'Not these types; repeat the key. Applied after types.',
  }),
}
const since_id = z.string().optional().meta({ description: 'Exclusive: the id of the last event that the client has.' })

export const conversationEndpoints = {
  listMessages: defineEndpoint({
    method: 'GET',
    path: '/v1/sessions/{session_id}/messages',
    tag: 'messages',
    access: 'member',
    summary: "Lists a session's messages, newest first",
    params,
    query: z.object({
      order: z.enum(['asc', 'desc']).default('desc'),
      limit: z
        .string()
        .regex(/^\d{1,15}$/, { error: 'must be a whole number, zero or more' })
        .transform((limit) => Math.min(Number(limit), 1000))
        .optional()
        .meta({ type: 'integer', description: 'At most 1000; without it, all messages.' }),
      offset,
    }),
    responses: { 200: listOf(Message) },
  }),
  createMessage: defineEndpoint({
    method: 'POST',
    path: '/v1/sessions/{session_id}/messages',
    tag: 'messages',
    access: 'member',
    summary: 'Posts a user message; a turn answers it',
    description:
      'Answers 201 at once. With ?wait=<seconds> it answers 200 with the finished turn, or 202 when the turn is not finished by then, or waits for its client. ' +
      "With Accept: text/event-stream it streams the events of this message's turn. A client that goes away changes nothing for the turn.",
    params,
    query: z.object({
      wait: z
        .string()
        .regex(/^\d{1,15}$/, { error: 'must be a whole number of seconds' })
        .transform(Number)
        .refine((seconds) => seconds <= MAX_WAIT_SECONDS, { error: `must be at most ${MAX_WAIT_SECONDS} seconds` })
        .optional()
        .meta({ type: 'integer', minimum: 0, maximum: MAX_WAIT_SECONDS }),
    }),
    body: CreateMessageRequest,
    creates: true,
    responses: { 201: Message, 200: WaitedTurn, 202: WaitedTurn },
    streams: "The turn's events, from input.message to its end",
  }),
  listEvents: defineEndpoint({
    method: 'GET',
    path: '/v1/sessions/{session_id}/events',
    tag: 'events',
    access: 'member',
    summary: "Lists a session's events, oldest first",
    params,
    query: z.object({
      since_id,
      ...eventFilter,
      limit: z
        .string()
        .regex(/^\d{1,15}$/, { error: 'must be a whole number from 1 to 1000' })
        .transform(Number)
        .refine((limit) => limit >= 1, { error: 'must be a whole number from 1 to 1000' })
        .transform((limit) => Math.min(limit, 1000))
        .optional()
        .meta({ type: 'integer', minimum: 1, maximum: 1000, description: 'Without it, all events.' }),
    }),
    responses: { 200: listOf(Event) },
  }),
  streamEvents: defineEndpoint({
    method: 'GET',
    path: '/v1/sessions/{session_id}/sse',
    tag: 'events',
    access: 'member',
    summary: "Streams a session's events: first what there is, then live",
    description: 'Resumes after since_id, or after the Last-Event-ID header when since_id is absent.',
    params,
    query: z.object({ since_id, ...eventFilter }),
    responses: {},
    streams: 'Server-Sent Events: connected, then every event by its type, disconnecting before the server closes',
  }),
} satisfies Record<string, Endpoint>
