import type { Event, Takeover } from 'agent-session-client'
import { byProcess, takenOver, wentOn } from '../../../console/parts/takeover.ts'
import { noticeTakeovers } from '../../../console/views/session/takeovers.ts'

const at = { lost_at: '2026-11-27T01:00:00.000Z', taken_over_at: '2026-11-27T01:00:03.100Z' }

it.each<[Partial<Takeover>, string, string]>([
  [
    { reason: 'process_lost', from_process: '1@worker-1', to_process: '1@worker-2' },
    'Worker lost. worker-2 went on after 3.1 s.',
    'Worker lost, taken over by worker-2 after 3.1 s',
  ],
  [
    { reason: 'process_stopped', from_process: '11@laptop', to_process: '12@laptop' },
    'Worker stopped. Process 12 went on after 3.1 s.',
    'Worker stopped, taken over by process 12 after 3.1 s',
  ],
  [
    { reason: 'retried', from_process: '11@laptop', to_process: '11@laptop' },
    'Attempt lost. The same worker went on after 3.1 s.',
    'Attempt lost, taken over by the same worker after 3.1 s',
  ],
  [
    { reason: 'process_lost', from_process: null, to_process: null },
    'Worker lost. Another worker went on after 3.1 s.',
    'Worker lost, taken over by another worker after 3.1 s',
  ],
  [
    { reason: 'process_lost', from_process: null, to_process: 'odd', taken_over_at: at.lost_at },
    'Worker lost. odd went on after 0 ms.',
    'Worker lost, taken over by odd after 0 ms',
  ],
])('says %j as a line and as a fact', (takeover, line, fact) => {
  const whole = { ...at, ...takeover } as Takeover
  expect([wentOn(whole), takenOver(whole)]).toEqual([line, fact])
})

it('tells once of the steps that one process took from another, by the longest', () => {
  const from = (from_process: string, taken_over_at: string) => ({ ...at, from_process, taken_over_at }) as Takeover
  const [short, long, other] = [
    from('1@a', '2026-11-27T01:00:01.000Z'),
    from('1@a', '2026-11-27T01:00:02.000Z'),
    from('1@b', '2026-11-27T01:00:01.000Z'),
  ]
  expect(byProcess([short, long, other, short])).toEqual([long, other])
})

it.each<[string, [type: string, atMs: number, data?: object][], boolean[]]>([
  [
    'an answer that begins again, for any reason',
    [
      ['output.message.started', 0],
      ['reason.retrying', 1],
      ['output.message.started', 2],
    ],
    [false, false, true],
  ],
  [
    'a result of a run that began late',
    [
      ['tool.started', 0],
      ['tool.completed', 5000, { duration_ms: 1000 }],
    ],
    [false, true],
  ],
  [
    'no result of the first run',
    [
      ['tool.started', 0],
      ['tool.completed', 5000, { duration_ms: 4900 }],
    ],
    [false, false],
  ],
  ['no result without a duration or a begin', [['tool.completed', 5000, {}]], [false]],
  [
    'no step of the next turn',
    [
      ['output.message.started', 0],
      ['turn.started', 1],
      ['output.message.started', 2],
    ],
    [false, false, false],
  ],
  [
    'a turn that begins long after the event before it, also of another turn',
    [
      ['input.message', 0],
      ['turn.started', 100],
      ['input.message', 1000],
      ['turn.completed', 9000],
      ['turn.started', 9100],
      ['input.message', 20_000],
      ['turn.started', 23_000],
    ],
    [false, false, false, false, false, false, true],
  ],
])('notices %s', (_, events, expected) => {
  const isTakenOver = noticeTakeovers()
  const told = events.map(([type, ms, data = {}]) =>
    isTakenOver({ type, ts: new Date(ms).toISOString(), data, context: { span_id: 'span' } } as unknown as Event),
  )
  expect(told).toEqual(expected)
})
