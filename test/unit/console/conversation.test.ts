import type { Event } from 'agent-session-client'
import { createConversation } from '../../../console/views/session/conversation.ts'

const TURN = 'turn_0193aaaabbbb7ccc8ddd0123456789ab'
const MESSAGE = TURN.replace('turn_', 'message_')

let sequence = 0
beforeEach(() => {
  sequence = 0
})

const event = (type: string, data: object = {}, turn_id: string = TURN): Event => {
  sequence++
  const id = `event_${sequence}`
  return { id, type, sequence, data, context: type === 'input.message' ? {} : { turn_id } } as unknown as Event
}
const said = (text: string, id = MESSAGE) =>
  event('input.message', { message: { id, content: [{ type: 'text', text }] } })
const delta = (accumulated: string) => event('output.message.delta', { accumulated })
const complete = (text: string, more: object = {}) =>
  event('output.message.completed', { message: { content: [{ type: 'text', text }], ...more } })
const calls = (...ids: string[]) => event('act.started', { tool_calls: ids.map((id) => ({ id, name: `tool_${id}` })) })

/** Returns what is shown of the only turn, in short. */
function shown(events: Event[]) {
  const { turns } = createConversation(events)
  expect(turns).toHaveLength(1)
  const [turn] = turns
  const parts = turn?.parts.map((part) => {
    if (part.type === 'answer') {
      const { thinking, text, isInterrupted, isTooLong } = part
      return [thinking, text, isInterrupted && 'cut', isTooLong && 'too long'].filter(Boolean).join('|')
    }
    if (part.type === 'retry') return `${part.isOver ? 'again' : 'waits'} ${part.count}: ${part.error}`
    if (part.type === 'said') return `said: ${part.message.id}`
    return part.calls.map(({ id, status }) => `${id} ${status}`).join(', ')
  })
  return { status: turn?.status, parts }
}

it.each<[string, () => Event[], string, string[]]>([
  ['a message in the queue', () => [said('Hi')], 'queued', []],
  [
    'text as it grows',
    () => [said('Hi'), event('turn.started'), event('output.message.started'), delta('He'), delta('Hello')],
    'active',
    ['Hello'],
  ],
  [
    'an attempt that is made again once, with nothing of the first',
    () => [
      said('Hi'),
      event('turn.started'),
      event('output.message.started'),
      event('reason.thinking.delta', { accumulated: 'Hm' }),
      delta('First half'),
      event('reason.retrying', { error: 'overloaded' }),
      event('output.message.started'),
      delta('Second'),
    ],
    'active',
    ['again 1: overloaded', 'Second'],
  ],
  [
    'failures of one model call once, with their number and the last error',
    () => [
      said('Hi'),
      ...['overloaded', 'overloaded', 'busy'].flatMap((error) => [
        event('output.message.started'),
        delta('First'),
        event('reason.retrying', { error }),
      ]),
    ],
    'queued',
    ['First', 'waits 3: busy'],
  ],
  [
    'failures of each model call, in the past once it goes on',
    () => [
      said('Hi'),
      event('output.message.started'),
      event('reason.retrying', { error: 'one' }),
      event('reason.retrying', { error: 'two' }),
      complete('Wait'),
      calls('a'),
      event('output.message.started'),
      event('reason.retrying', { error: 'three' }),
      delta('Done'),
    ],
    'queued',
    ['again 2: two', 'Wait', 'a planned', 'again 1: three', 'Done'],
  ],
  [
    'failures in the past once the turn is over',
    () => [said('Hi'), event('reason.retrying', { error: 'one' }), event('turn.cancelled', {})],
    'cancelled',
    ['again 1: one'],
  ],
  [
    'a message that joined the turn, below the text that goes on',
    () => [
      said('Hi'),
      event('turn.started'),
      event('output.message.started'),
      delta('On'),
      { ...said('Faster'), context: { turn_id: TURN } } as Event,
      delta('One'),
      complete('One.'),
    ],
    'active',
    ['One.', `said: ${MESSAGE}`],
  ],
  [
    'thinking and text',
    () => [
      said('Hi'),
      event('reason.started'),
      event('reason.thinking.delta', { accumulated: 'H' }),
      event('reason.thinking.completed', { thinking: 'Hm' }),
      complete('Yes'),
    ],
    'active',
    ['Hm|Yes'],
  ],
  [
    'calls below the answer that makes them, and the next answer below those',
    () => [
      said('Hi'),
      complete('Wait'),
      calls('a', 'b'),
      event('tool.started', { tool_call: { id: 'a', name: 'tool_a', arguments: {} } }),
      event('tool.completed', { tool_call_id: 'b', tool_name: 'tool_b', status: 'error', error: 'no' }),
      delta('Done'),
    ],
    'queued',
    ['Wait', 'a running, b error', 'Done'],
  ],
  [
    'an id that a model uses again in a later step',
    () => [
      said('Hi'),
      calls('a'),
      event('tool.completed', { tool_call_id: 'a', tool_name: 'tool_a', status: 'success' }),
      complete(''),
      calls('a'),
    ],
    'queued',
    ['a success', '', 'a planned'],
  ],
  [
    'what waits for a client, until the last answer',
    () => [
      said('Hi'),
      calls('a', 'b'),
      event('tool.call_requested', {
        tool_calls: ['a', 'b'].map((id) => ({ id, name: id, kind: 'result', arguments: {} })),
      }),
      event('tool.completed', { tool_call_id: 'a', tool_name: 'tool_a', status: 'success' }),
    ],
    'waiting',
    ['a success, b waiting'],
  ],
  [
    'nothing that waits or is written in a turn that has ended',
    () => [
      said('Hi'),
      calls('a'),
      event('tool.call_requested', { tool_calls: [{ id: 'a', name: 'a', kind: 'approval', arguments: {} }] }),
      delta('Never compl'),
      event('turn.failed', { error: 'out of luck' }),
    ],
    'failed',
    ['a cancelled'],
  ],
  [
    'the part of an answer that was kept',
    () => [said('Hi'), delta('Hel'), complete('Hel', { metadata: { interrupted: true } }), event('turn.cancelled', {})],
    'cancelled',
    ['Hel|cut'],
  ],
  [
    'that an answer was too long',
    () => [said('Hi'), complete('Hel', { metadata: { finish_reason: 'length' } })],
    'queued',
    ['Hel|too long'],
  ],
  [
    'an approved call as running, and its turn as active',
    () => [
      said('Hi'),
      event('turn.started'),
      calls('a'),
      event('tool.call_requested', { tool_calls: [{ id: 'a', name: 'tool_a', kind: 'approval', arguments: {} }] }),
      event('tool.started', { tool_call: { id: 'a', name: 'tool_a', arguments: {} } }),
    ],
    'active',
    ['a running'],
  ],
  ['a type that this console does not know', () => [said('Hi'), event('turn.dreamt')], 'queued', []],
])('shows %s', (_, events, status, parts) => {
  expect(shown(events())).toEqual({ status, parts })
})

it('takes an event that comes again, or too late, only once', () => {
  const events = [said('Hi'), event('turn.started'), calls('a'), complete('Yes'), event('turn.completed', {})]
  const conversation = createConversation(events)
  const before = JSON.stringify(conversation.turns)
  for (const again of events) conversation.take(again)
  expect(JSON.stringify(conversation.turns)).toBe(before)
})

it('puts a turn whose message is not loaded before the turns that came while it ran', () => {
  const other = TURN.replace('0193', '0194')
  const [first, second] = [said('Two', other.replace('turn_', 'message_')), event('output.message.started')]
  const { turns } = createConversation([first, second, event('turn.completed'), event('turn.started', {}, other)])
  expect(turns.map(({ id, input, status }) => [id, input === undefined, status])).toEqual([
    [TURN, true, 'completed'],
    [other, false, 'active'],
  ])
})

it('keeps turns in the order of their messages, and counts the changes of each', () => {
  const other = TURN.replace('0193', '0194')
  const conversation = createConversation([said('One'), said('Two', other.replace('turn_', 'message_'))])
  conversation.take(event('turn.started'))
  expect(conversation.turns.map(({ id, version }) => [id, version])).toEqual([
    [TURN, 2],
    [other, 1],
  ])
})
