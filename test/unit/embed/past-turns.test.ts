import type { Message, Turn } from 'agent-session-client'
import { turnsOf } from '../../../embed/src/past-turns.ts'

/** Returns a message of a turn. The other fields do not matter here. */
const message = (number: number, role: Message['role'], content: Message['content']): Message => ({
  id: role === 'user' ? `message_${number}` : `message_${number}_${role}`,
  session_id: 'session_1',
  sequence: number,
  role,
  content,
  created_at: '2026-01-01T00:00:00.000Z',
  ...(role !== 'user' && { turn_id: `turn_${number}` }),
})
const text = (words: string): Message['content'] => [{ type: 'text', text: words }]
const exchange = (number: number): Message[] => [
  message(number, 'user', text(`question ${number}`)),
  message(number, 'agent', text(`answer ${number}`)),
]
const turn = (number: number, status: Turn['status'], error?: string): Turn => ({
  id: `turn_${number}`,
  session_id: 'session_1',
  status,
  input_message_id: `message_${number}`,
  iterations: 1,
  usage: { input_tokens: 1, output_tokens: 1 },
  error,
  workflow_id: '',
  pending_tool_calls: [],
  created_at: '2026-01-01T00:00:00.000Z',
})

const shortOf = (messages: Message[], known: Turn[]) =>
  turnsOf(messages, known).map(({ turnId, state, parts }) => [turnId, state, parts.length])

describe('the turns of a conversation', () => {
  it('have their state, and unfinished ones have no parts, which are followed', () => {
    const messages = [1, 2, 3, 4].flatMap(exchange)
    const known = [turn(4, 'waiting'), turn(3, 'failed', 'Broken.'), turn(2, 'cancelled'), turn(1, 'completed')]
    expect(shortOf(messages, known)).toEqual([
      ['turn_1', 'completed', 1],
      ['turn_2', 'cancelled', 1],
      ['turn_3', { failure: 'Broken.' }, 1],
      ['turn_4', 'unfinished', 0],
    ])
  })

  it('stay together when messages were queued in between', () => {
    const answer = message(1, 'agent', text('answer 1'))
    const [first, second] = [1, 2].map((number) => message(number, 'user', text(`question ${number}`)))
    const messages = [first, second, answer].filter((one) => one !== undefined)
    expect(shortOf(messages, [turn(2, 'active'), turn(1, 'completed')])).toEqual([
      ['turn_1', 'completed', 1],
      ['turn_2', 'unfinished', 0],
    ])
  })

  it('are unfinished if they came after the turns were listed, and over if they are older than the list', () => {
    expect(shortOf([1, 2, 3].flatMap(exchange), [turn(2, 'completed')])).toEqual([
      ['turn_1', 'completed', 1],
      ['turn_2', 'completed', 1],
      ['turn_3', 'unfinished', 0],
    ])
    expect(shortOf(exchange(1), [])).toEqual([['turn_1', 'unfinished', 0]])
  })

  it('have the results of calls under the names of their tools', () => {
    const call = { type: 'tool_call' as const, id: 'a', name: 'paint', arguments: {} }
    const image = { type: 'image' as const, base64: 'AA==', media_type: 'image/png' }
    const messages = [
      message(1, 'user', text('Paint.')),
      message(1, 'agent', [call]),
      message(1, 'tool_result', [{ type: 'tool_result', tool_call_id: 'a', result: { painted: true } }, image]),
      message(1, 'tool_result', [{ type: 'tool_result', tool_call_id: 'b', result: null, error: 'No paint.' }]),
    ]
    const [only] = turnsOf(messages, [turn(1, 'completed')])
    const result = [{ type: 'text', text: '{"painted":true}' }, image]
    expect(only?.parts.slice(1)).toMatchObject([
      { type: 'tool', step: 0, id: 'a', name: 'paint', status: 'success', result },
      { type: 'tool', step: 0, id: 'b', name: 'tool', status: 'error', result: [], error: 'No paint.' },
    ])
  })
})
