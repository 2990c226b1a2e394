import type { Json } from './http.ts'

/** Event types that a retried step may record again. All others occur once for each step or turn. */
const REPEATABLE = ['output.message.started', 'output.message.delta', 'reason.thinking.delta', 'tool.progress']
const TURN_END = ['turn.completed', 'turn.failed', 'turn.cancelled']

export const typesOf = (events: Json[]): string[] => events.map((event) => event.type)

/** Returns the turn of an event. The context of input.message has no turn, so its id comes from the message. */
export const turnOf = (event: Json): string =>
  event.context.turn_id ?? String(event.data.message.id).replace('message_', 'turn_')

export const eventsOfTurn = (events: Json[], turnId: string): Json[] =>
  events.filter((event) => turnOf(event) === turnId)

/** Returns the turns of a record in the order of their messages. */
export const turnsOf = (events: Json[]): string[] =>
  events.filter((event) => event.type === 'input.message' && !event.context.turn_id).map(turnOf)

export const textOf = (message: Json): string => message.content.map((part: Json) => part.text ?? '').join('')

/** Checks the guarantees that hold for every session's record in any state. */
export function expectSoundRecord(events: Json[]): void {
  expect(events.map((event) => event.sequence)).toEqual(events.map((_, index) => index + 1))
  expect(new Set(events.map((event) => event.id)).size).toBe(events.length)
  for (const turnId of new Set(events.map(turnOf))) expectSoundTurn(eventsOfTurn(events, turnId))
  expectOneTurnAtATime(events)
}

function expectSoundTurn(events: Json[]): void {
  const once = events.filter((event) => !REPEATABLE.includes(event.type))
  const keys = once.map(({ type, context, data }) => `${type} ${context.span_id ?? ''} ${data.attempt ?? ''}`)
  expect(keys).toEqual([...new Set(keys)])
  const end = events.findIndex((event) => TURN_END.includes(event.type))
  // session.idled belongs to the session and follows the end of its last turn.
  if (end >= 0) expect(typesOf(events.slice(end + 1)).filter((type) => type !== 'session.idled')).toEqual([])
  expectSoundAnswers(events)
}

/**
 * Expects that each attempt's deltas add up to `accumulated`, that no attempt writes after a newer one, and that the
 * last attempt's text is the answer.
 */
function expectSoundAnswers(events: Json[]): void {
  let execId: string | undefined
  let text = ''
  const execIds = new Set<string>()
  for (const event of events) {
    if (event.type === 'output.message.started') {
      execId = event.context.exec_id
      expect(execIds).not.toContain(execId)
      execIds.add(event.context.exec_id)
      text = ''
    }
    if (event.type === 'output.message.delta') {
      text += event.data.delta
      expect(event.context.exec_id).toBe(execId)
      expect(event.data.accumulated).toBe(text)
    }
    if (event.type === 'output.message.completed') {
      expect(event.context.exec_id).toBe(execId)
      expect(textOf(event.data.message)).toBe(text)
    }
  }
}

/** Expects that turns do not overlap. A turn that was cancelled in the queue never ran and is left out. */
function expectOneTurnAtATime(events: Json[]): void {
  const started = events.filter((event) => event.type === 'turn.started').map(turnOf)
  const own = events.filter((event) => event.type !== 'input.message' && started.includes(turnOf(event))).map(turnOf)
  const order = own.filter((turnId, index) => turnId !== own[index - 1])
  expect(order).toEqual([...new Set(order)])
}

/** Events of an attempt at the answer that a killed worker interrupted, or that failed. */
const INTERRUPTED = {
  before_text: ['output.message.started'],
  in_text: ['output.message.started', 'output.message.delta'],
  failed_before_text: ['output.message.started', 'reason.retrying'],
  failed_in_text: ['output.message.started', 'output.message.delta', 'reason.retrying'],
}
export type Interruption = keyof typeof INTERRUPTED

/** Returns the event types of a session's first plain turn, with consecutive deltas counted as one. */
export const firstTurnTypes = (...interruptions: Interruption[]): string[] => [
  'input.message',
  'session.started',
  'session.activated',
  'turn.started',
  'reason.started',
  ...interruptions.flatMap((where) => INTERRUPTED[where]),
  'output.message.started',
  'output.message.delta',
  'llm.generation',
  'output.message.completed',
  'reason.completed',
  'turn.completed',
  'session.idled',
]

export const compactTypes = (events: Json[]): string[] =>
  typesOf(events).filter((type, index, types) => type !== 'output.message.delta' || types[index - 1] !== type)

/** Returns the text of a turn's answer. */
export function answerOf(events: Json[], turnId = turnsOf(events)[0]): string | undefined {
  const own = events.find((event) => event.type === 'output.message.completed' && turnOf(event) === turnId)
  return own && textOf(own.data.message)
}

/** Returns the longest time without an event after `since`, leaving out the time spent waiting for the client. */
export function standstillMs(events: Json[], since: number): number {
  const waitsForClient = new Set<string>()
  let longest = 0
  let before = since
  for (const event of events) {
    if (event.type === 'tool.call_requested') for (const { id } of event.data.tool_calls) waitsForClient.add(id)
    // The answer starts an approved call and completes any other.
    const isAnswer =
      (event.type === 'tool.started' && waitsForClient.delete(event.data.tool_call.id)) ||
      (event.type === 'tool.completed' && waitsForClient.delete(event.data.tool_call_id))
    const at = Date.parse(event.ts)
    if (at <= since) continue
    if (!isAnswer) longest = Math.max(longest, at - before)
    before = at
  }
  return longest
}
