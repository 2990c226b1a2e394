import type { Event, Takeover } from 'agent-session-client'
import { type Span, spansOf, withTakeovers } from '../../../console/views/turn/spans.ts'

let at = 0
beforeEach(() => {
  at = 0
})

/** Returns an event that happens 10 ms after the one before. */
function event(type: string, data: object = {}, span_id?: string, parent_span_id?: string): Event {
  at += 10
  const ts = new Date(at).toISOString()
  return { id: `event_${at}`, type, ts, data, context: { span_id, parent_span_id } } as unknown as Event
}

const usage = { input_tokens: 3, output_tokens: 4 }
const completed = (id: string, more: object = {}) =>
  event('tool.completed', { tool_call_id: id, tool_name: id, status: 'success', ...more }, `span ${id}`, 'a1')
const started = (id: string) => event('tool.started', { tool_call: { id, name: id } }, `span ${id}`, 'a1')
const asked = (id: string, kind: string) =>
  event('tool.call_requested', { tool_calls: [{ id, name: id, kind }] }, 'a1', 't')
const generation = () => event('llm.generation', { metadata: { usage, cost_usd: '0.5' } }, 'x', 'r1')

const shown = ({ depth, title, from, to, problem, tokens, costUsd }: Span): string =>
  [`${'  '.repeat(depth)}${title} ${from}-${to ?? ''}`, problem, tokens, costUsd]
    .filter((part) => part !== undefined)
    .join(' ')

it.each<[string, () => Event[], string[]]>([
  ['a turn that waits in the queue', () => [event('input.message')], ['Turn 10-', '  Queue 10-']],
  [
    'an answer',
    () => [
      event('input.message'),
      event('turn.started', {}, 't'),
      event('reason.started', { metadata: { model: 'm' } }, 'r1', 't'),
      event('output.message.started', {}, 'r1', 't'),
      generation(),
      event('output.message.completed', {}, 'r1', 't'),
      event('reason.completed', { usage }, 'r1', 't'),
      event('turn.completed', { usage, cost_usd: '0.5' }, 't'),
    ],
    ['Turn 10-80 7 0.5', '  Queue 10-20', '  m 30-70 7 0.5', '    Model call 40-60 7 0.5'],
  ],
  [
    'attempts, one without a recorded end',
    () => [
      event('turn.started', {}, 't'),
      event('reason.started', {}, 'r1', 't'),
      event('output.message.started', {}, 'r1', 't'),
      event('reason.retrying', { error: 'busy' }, 'r1', 't'),
      event('output.message.started', {}, 'r1', 't'),
      event('output.message.started', {}, 'r1', 't'),
      generation(),
    ],
    ['Turn 10-', '  Reasoning 20-', '    Model call 30-40 busy', '    Attempt 2 50-60', '    Attempt 3 60- 7 0.5'],
  ],
  [
    'calls at the same time, approvals and answers of a client',
    () => [
      event('turn.started', {}, 't'),
      event('act.started', {}, 'a1', 't'),
      started('add'),
      asked('ask', 'client_tool'),
      asked('multiply', 'approval'),
      completed('add', { status: 'error', error: 'no' }),
      completed('ask'),
      started('multiply'),
      completed('multiply'),
      event('act.completed', {}, 'a1', 't'),
    ],
    [
      'Turn 10-',
      '  Tools 20-100',
      '    add 30-60 no',
      '    ask: answer 40-70',
      '    multiply: approval 50-80',
      '    multiply 80-90',
    ],
  ],
  [
    'tools by the names that people read, and commands that exit with an error',
    () => [
      event('act.started', { tool_calls: [{ id: 'bash', name: 'bash', display_name: 'Run bash' }] }, 'a1', 't'),
      asked('bash', 'approval'),
      started('bash'),
      completed('bash', { result: [{ type: 'text', text: '{"exit_code":3,"stdout":""}' }] }),
    ],
    ['Turn 10-', '  Tools 10-', '    Run bash: approval 20-30', '    Run bash 30-40 Exit code 3.'],
  ],
  [
    'a refused approval, without a run',
    () => [
      event('act.started', {}, 'a1', 't'),
      asked('multiply', 'approval'),
      completed('multiply', { status: 'error' }),
    ],
    ['Turn 10-', '  Tools 10-', '    multiply: approval 20-30 error'],
  ],
  [
    'a turn that is cancelled while it waits',
    () => [
      event('act.started', {}, 'a1', 't'),
      asked('ask', 'client_tool'),
      completed('ask', { status: 'cancelled' }),
      event('turn.cancelled', { reason: 'by hand', usage }, 't'),
    ],
    ['Turn 10-40 by hand 7', '  Tools 10-40', '    ask: answer 20-30 cancelled'],
  ],
  [
    'questions of a tool',
    () => [
      event('act.started', {}, 'a1', 't'),
      started('buy'),
      event('tool.call_requested', { tool_calls: [{ id: 'q1', name: 'mcp_elicitation' }] }, 'x', 'span buy'),
      completed('q1'),
      completed('buy'),
    ],
    ['Turn 10-', '  Tools 10-', '    buy 20-50', '    Question 30-40'],
  ],
  [
    'a turn whose beginning is missing',
    () => [
      completed('add'),
      event('reason.completed', { error: 'bad' }, 'r1', 't'),
      event('turn.failed', { error: 'bad' }, 't'),
    ],
    ['Turn 10-30 bad', '  Reasoning 20-20 bad', '    Model call 20-20 bad', '    add 10-10'],
  ],
  ['a type that this console does not know', () => [event('turn.dreamt')], ['Turn 10-']],
])('shows %s', (_, events, expected) => {
  expect(spansOf(events()).map(shown)).toEqual(expected)
})

const takeover = (span_id: string, begun: number, lost: number, until: number, tool_call_id: string | null = null) => {
  const [begun_at, lost_at, taken_over_at] = [begun, lost, until].map((ms) => new Date(ms).toISOString())
  return { span_id, tool_call_id, iteration: 1, reason: 'process_lost', begun_at, lost_at, taken_over_at } as Takeover
}
const losses = ({ title, from, to, losses }: Span): string =>
  `${title} ${from}-${to ?? ''}${losses.map((loss) => ` lost ${loss.from}-${loss.to}, on at ${loss.until}`).join('')}`

describe('attempts that were lost', () => {
  const reasoning = (attempts: number) => [
    event('turn.started', {}, 't'),
    event('reason.started', {}, 'r1', 't'),
    ...Array.from({ length: attempts }, () => event('output.message.started', {}, 'r1', 't')),
  ]

  it('end at their last sign of life', () => {
    const spans = withTakeovers(spansOf(reasoning(3)), [takeover('r1', 30, 33, 40), takeover('r1', 40, 41, 50)])
    expect(spans.slice(2).map(losses)).toEqual([
      'Model call 30-33 lost 30-33, on at 40',
      'Attempt 2 40-41 lost 40-41, on at 50',
      'Attempt 3 50-',
    ])
  })

  it('are shown before the first event of the step, and where the next attempt has not begun yet', () => {
    const spans = withTakeovers(spansOf(reasoning(1)), [takeover('r1', 15, 18, 30), takeover('r1', 30, 35, 60)])
    expect(spans.map(losses)).toEqual([
      'Turn 10-',
      'Reasoning 15-',
      'Lost attempt 15-18 lost 15-18, on at 30',
      'Model call 30-35 lost 30-35, on at 60',
    ])
  })

  it('of a tool are parts of its span', () => {
    const events = [event('act.started', {}, 'a1', 't'), started('add'), started('buy'), completed('add')]
    const taken = [takeover('span add', 20, 22, 24, 'add'), takeover('span add', 24, 25, 39, 'add')]
    expect(withTakeovers(spansOf(events), taken).slice(2).map(losses)).toEqual([
      'add 20-40 lost 20-22, on at 24 lost 24-25, on at 39',
      'buy 30-',
    ])
  })

  it('of steps that are not loaded are not shown', () => {
    expect(
      withTakeovers(spansOf(reasoning(1)), [takeover('r2', 1, 2, 3), takeover('x', 1, 2, 3, 'x')]).flatMap(
        ({ losses }) => losses,
      ),
    ).toEqual([])
  })
})

it('never ends a span before it begins, whatever the clocks say', () => {
  const first = event('act.started', {}, 'a1', 't')
  const early = { ...completed('add'), ts: new Date(0).toISOString() } as Event
  for (const { from, to } of spansOf([first, started('add'), early])) expect(to ?? from).toBeGreaterThanOrEqual(from)
})

it('has each event once', () => {
  const events = [
    event('input.message'),
    event('act.started', {}, 'a1', 't'),
    started('add'),
    completed('add'),
    event('x'),
  ]
  const taken = spansOf(events).flatMap((span) => span.events.map(({ id }) => id))
  expect(taken.sort()).toEqual(events.map(({ id }) => id).sort())
})
