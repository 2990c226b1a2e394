import { type EventType, eventTypes, turnEndTypes } from '../../../contract/events.ts'
import { type Announcement, announces } from '../../../domain/events/log/announcements.ts'

const text = (value: string) => ({ type: 'text', text: value })
const call = { type: 'tool_call', id: 'call_1', name: 'echo', arguments: {} }
const answer = (...content: object[]) => ({ message: { id: 'message_1', role: 'agent', content } })
const tokens = { input_tokens: 10, output_tokens: 3 }
const allTokens = { ...tokens, cache_read_tokens: 2, cache_creation_tokens: 1 }
const waits: Announcement = { sessionStatus: 'waitingfortoolresults', turnStatus: 'waiting' }

type Case = [data: Record<string, unknown>, announcement: Announcement]
const expected: Record<EventType, Case[]> = {
  'input.message': [[answer(text('Hello')), { steers: true }]],
  'session.started': [[{}, { beginsSession: true }]],
  'session.activated': [[{}, { sessionStatus: 'active' }]],
  'session.compacted': [[{ dropped: { messages: 2 } }, {}]],
  'session.idled': [[{ usage: tokens }, { sessionStatus: 'idle' }]],
  'turn.started': [[{ input_content: 'Hello' }, { turnStatus: 'active', beginsTurn: true }]],
  'turn.completed': [
    [{ usage: tokens }, { turnStatus: 'completed', steeredThrough: 0 }],
    [{ steered_through: 7 }, { turnStatus: 'completed', steeredThrough: 7 }],
  ],
  'turn.failed': [
    [
      { error: 'It broke.', error_code: 'llm_error' },
      { turnStatus: 'failed', failure: { error: 'It broke.', code: 'llm_error' } },
    ],
    [{ error: 'It broke.' }, { turnStatus: 'failed', failure: { error: 'It broke.', code: undefined } }],
    [{}, { turnStatus: 'failed' }],
  ],
  'turn.cancelled': [
    [
      { reason: 'enough', usage: tokens },
      { turnStatus: 'cancelled', notifiesWorkflow: true },
    ],
  ],
  'reason.started': [[{}, { sessionStatus: 'active', turnStatus: 'active', iterations: 1 }]],
  'reason.completed': [
    [{ success: true, usage: allTokens }, { usage: allTokens }],
    [{ success: true, usage: tokens }, { usage: { ...tokens, cache_read_tokens: 0, cache_creation_tokens: 0 } }],
    [{ success: false, error: 'It broke.', usage: null }, {}],
    [{ success: false, error: 'It broke.' }, {}],
  ],
  'reason.retrying': [[{ attempt: 1, error: 'It broke.' }, {}]],
  'reason.thinking.started': [[{}, {}]],
  'reason.thinking.delta': [[{ delta: 'so' }, { mayRepeat: true }]],
  'reason.thinking.completed': [[{ thinking: 'so' }, {}]],
  'output.message.started': [[{}, { mayRepeat: true }]],
  'output.message.delta': [[{ delta: 'so' }, { mayRepeat: true }]],
  'output.message.completed': [
    [{ ...answer(text('An '), call, text('answer.')), usage: tokens }, { outputPreview: 'An answer.' }],
    [answer(text('😀'.repeat(300))), { outputPreview: '😀'.repeat(200) }],
    [answer(call), {}],
    [{ message: { ...answer(text('All.')).message, metadata: { summary: true } } }, {}],
    [answer(), {}],
  ],
  'act.started': [[{ tool_calls: [call] }, {}]],
  'act.completed': [[{ success_count: 1 }, {}]],
  'tool.started': [[{ tool_call: call }, { answersCall: true }]],
  'tool.progress': [[{ progress: 1 }, {}]],
  'tool.completed': [[{ success: false, error: 'It broke.' }, { answersCall: true }]],
  'tool.call_requested': [[{ tool_calls: [call] }, waits]],
  'llm.generation': [[{ metadata: { usage: tokens } }, {}]],
}

describe('what an event announces', () => {
  for (const type of eventTypes) {
    it(`${type}`, () => {
      for (const [data, announcement] of expected[type]) expect(announces({ type, data })).toEqual(announcement)
    })
  }

  it('is the end of the turn for exactly the types that end one', () => {
    const ends = eventTypes.filter((type) =>
      ['completed', 'failed', 'cancelled'].includes(announces({ type, data: {} }).turnStatus ?? ''),
    )
    expect(ends.sort()).toEqual([...turnEndTypes].sort())
  })

  it('is nothing else for a type that may repeat', () => {
    const repeatable = eventTypes.map((type) => announces({ type, data: {} })).filter(({ mayRepeat }) => mayRepeat)
    for (const announcement of repeatable) expect(announcement).toEqual({ mayRepeat: true })
  })
})
