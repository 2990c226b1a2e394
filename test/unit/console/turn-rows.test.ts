import type { Event } from 'agent-session-client'
import { newFrom } from '../../../console/views/turn/input.ts'
import { rowsOf } from '../../../console/views/turn/rows.ts'
import { spansOf } from '../../../console/views/turn/spans.ts'

let sequence = 0
const event = (type: string, data: object = {}): Event => {
  sequence++
  const context = { span_id: 'r1', parent_span_id: 't' }
  return {
    id: `event_${sequence}`,
    type,
    ts: new Date(sequence).toISOString(),
    sequence,
    data,
    context,
  } as unknown as Event
}
const started = () => event('reason.started', { metadata: { model: 'm' } })
const attempt = () => event('output.message.started')
const rows = (...events: Event[]) => rowsOf(spansOf(events)).map(({ span, keys }) => [span.title, span.depth, ...keys])

it('is one row for a model call of one attempt, which links to either span find', () => {
  expect(rows(started())).toEqual([
    ['Turn', 0, 'turn'],
    ['m', 1, 'r1'],
  ])
  expect(rows(started(), attempt())).toEqual([
    ['Turn', 0, 'turn'],
    ['m', 1, 'r1.1', 'r1'],
  ])
  const [, row] = rowsOf(spansOf([started(), attempt(), event('reason.completed', {})]))
  expect(row?.span).toMatchObject({ kind: 'model', to: sequence, events: [{}, {}, { type: 'reason.completed' }] })
})

it('is a row for each of several attempts', () => {
  const failed = event('reason.retrying', { error: 'busy' })
  expect(rows(started(), attempt(), failed, attempt())).toEqual([
    ['Turn', 0, 'turn'],
    ['m', 1, 'r1'],
    ['Model call', 2, 'r1.1'],
    ['Attempt 2', 2, 'r1.2'],
  ])
})

it.each<[string, string[], number]>([
  ['a first message', ['user'], 0],
  ['a second message', ['user', 'agent', 'user'], 2],
  ['results, from the answer that asked for them', ['user', 'agent', 'user', 'agent', 'tool_result', 'tool_result'], 3],
  ['results and a message that joined the turn', ['user', 'agent', 'tool_result', 'user'], 1],
  ['nothing', [], 0],
])('shows what a model has not read before: %s', (_, roles, expected) => {
  expect(newFrom(roles.map((role) => ({ role: role as 'user' })))).toBe(expected)
})
