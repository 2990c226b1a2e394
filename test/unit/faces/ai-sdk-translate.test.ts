import { createTranslation, type TranslationOptions } from '../../../api/faces/ai-sdk/translate.ts'
import type { TurnEvent } from '../../../api/faces/events.ts'

const OPTIONS: TranslationOptions = { turnId: 'turn_1', version: '7', holdsText: false, answeredUntil: 0 }
type Given = [type: TurnEvent['type'], data?: object]

/** Returns the chunks of a turn with these events, each as its type and what it says. */
function chunksOf(events: Given[], options: Partial<TranslationOptions> = {}): string[] {
  const translation = createTranslation({ ...OPTIONS, ...options })
  const frames = [translation.begin()]
  events.forEach(([type, data = {}], index) => {
    if (!translation.isOver) frames.push(translation.event({ type, data, sequence: index + 1 } as TurnEvent))
  })
  return frames.flat().map(({ line }) => {
    if (line === '[DONE]') return line
    const { type, id: _, ...rest } = JSON.parse(line)
    const said = Object.values(rest).map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    return [type, ...said].join(' ')
  })
}

const attempt: Given = ['output.message.started']
const said = (accumulated: string): Given => ['output.message.delta', { accumulated }]
const thought = (accumulated: string): Given => ['reason.thinking.delta', { accumulated }]
const answer = (text: string, thinking?: string, calls: object[] = []): Given => [
  'output.message.completed',
  { message: { content: [{ type: 'text', text }, ...calls], thinking } },
]
const START = 'start msg_1'
const STOP = ['finish-step', 'finish stop', '[DONE]']
const END: Given = ['turn.completed', {}]

const CALL = { type: 'tool_call', id: 'c1', name: 'paint', arguments: { colour: 'red' } }
const called = (policy: string): Given[] => [
  ['reason.started'],
  attempt,
  answer('', undefined, [CALL]),
  ['act.started', { tool_calls: [{ id: 'c1', name: 'paint', policy }] }],
]
const completed = (status: string, more: object = {}): Given => [
  'tool.completed',
  { tool_call_id: 'c1', tool_name: 'paint', status, ...more },
]
const asked = (kind: string): Given => [
  'tool.call_requested',
  { tool_calls: [{ id: 'c1', name: 'paint', arguments: CALL.arguments, kind }] },
]
const OURS = 'tool-input-available c1 paint {"colour":"red"} true'
const THEIRS = 'tool-input-available c1 paint {"colour":"red"}'
const WAIT = ['finish-step', 'finish tool-calls', '[DONE]']

describe('a turn for the AI SDK', () => {
  const plain: Given[] = [
    ['reason.started'],
    attempt,
    thought('Hm'),
    thought('Hmm'),
    said('On'),
    said('One'),
    answer('One.', 'Hmm'),
    END,
  ]
  const retried: Given[] = [['reason.started'], attempt, said('Bad'), attempt, said('Go'), answer('Good'), END]

  it.each<[string, Given[], Partial<TranslationOptions>, string[]]>([
    [
      'streams thinking and text, and the rest of them',
      plain,
      {},
      [
        'start-step',
        ...['reasoning-start', 'reasoning-delta Hm', 'reasoning-delta m', 'reasoning-end'],
        ...['text-start', 'text-delta On', 'text-delta e', 'text-delta .', 'text-end'],
        ...STOP,
      ],
    ],
    [
      'holds a step until it is complete',
      plain,
      { version: '6', holdsText: true },
      [
        'start-step',
        ...['reasoning-start', 'reasoning-delta Hmm', 'reasoning-end', 'text-start', 'text-delta One.', 'text-end'],
        ...STOP,
      ],
    ],
    [
      'takes back a failed attempt in version 7',
      retried,
      {},
      [
        ...['start-step', 'text-start', 'text-delta Bad', 'reset-step'],
        ...['text-start', 'text-delta Go', 'text-delta od', 'text-end'],
        ...STOP,
      ],
    ],
    [
      'never sends a failed attempt where text is held',
      retried,
      { version: '5', holdsText: true },
      ['start-step', 'text-start', 'text-delta Good', 'text-end', ...STOP],
    ],
    [
      'continues a failed attempt where it cannot be taken back',
      [
        ...([['reason.started'], attempt, thought('Hm'), said('One, t')] satisfies Given[]),
        ...[attempt, thought('Hmm'), said('One'), said('One, two'), answer('One, two.', 'Hmm'), END],
      ],
      { version: '5' },
      [
        ...['start-step', 'reasoning-start', 'reasoning-delta Hm', 'reasoning-end'],
        ...['text-start', 'text-delta One, t', 'text-delta wo', 'text-delta .', 'text-end'],
        ...STOP,
      ],
    ],
    [
      'ends with an error where a failed attempt can be neither taken back nor continued',
      retried,
      { version: '6' },
      [
        ...['start-step', 'text-start', 'text-delta Bad', 'text-end', 'finish-step'],
        ...[expect.stringMatching(/^error The answer began anew/), '[DONE]'],
      ],
    ],
    [
      'continues the thoughts of a failed attempt, and leaves out others',
      [
        ...([['reason.started'], attempt, thought('H'), attempt, thought('Hm')] satisfies Given[]),
        ...[
          attempt,
          thought('Oh'),
          ['reason.thinking.completed', { thinking: 'Oh' }] satisfies Given,
          answer('One.'),
          END,
        ],
      ],
      { version: '6' },
      [
        ...['start-step', 'reasoning-start', 'reasoning-delta H', 'reasoning-delta m', 'reasoning-end'],
        ...['text-start', 'text-delta One.', 'text-end', ...STOP],
      ],
    ],
    [
      'runs tools as a provider does',
      [
        ...called('auto'),
        completed('success', { result: [{ type: 'text', text: '{"a":1}' }] }),
        ['reason.started'],
        END,
      ],
      {},
      ['start-step', OURS, 'tool-output-available c1 {"a":1}', 'finish-step', 'start-step', ...STOP],
    ],
    [
      'shows the images of a result as files',
      [
        ...called('auto'),
        completed('success', { result: [{ type: 'image', base64: 'AA==', media_type: 'image/gif' }] }),
        END,
      ],
      {},
      ['start-step', OURS, 'tool-output-available c1 null', 'file image/gif data:image/gif;base64,AA==', ...STOP],
    ],
    [
      'asks for the result of a client tool',
      [...called('client_side'), asked('client_tool')],
      {},
      ['start-step', THEIRS, ...WAIT],
    ],
    [
      'goes on past a request that was answered',
      [
        ...called('client_side'),
        asked('client_tool'),
        completed('success', { result: [{ type: 'text', text: '1' }] }),
        END,
      ],
      { answeredUntil: 5 },
      ['start-step', THEIRS, 'tool-output-available c1 1', ...STOP],
    ],
    ['asks a question of a tool as a call', [asked('client_tool')], {}, [THEIRS, 'finish tool-calls', '[DONE]']],
    [
      'asks for approval',
      [...called('requires_approval'), asked('approval')],
      { version: '6' },
      ['start-step', OURS, 'tool-approval-request c1 c1', ...WAIT],
    ],
    [
      'asks for approval by a data part in version 5',
      [...called('requires_approval'), asked('approval')],
      { version: '5' },
      ['start-step', OURS, 'data-approval {"toolCallId":"c1","toolName":"paint","input":{"colour":"red"}}', ...WAIT],
    ],
    [
      'tells a denied call from a failed one',
      [completed('error', { error: 'No.' }), END],
      { version: '6', approvals: ['c1'] },
      ['tool-output-denied c1', 'finish stop', '[DONE]'],
    ],
    [
      'tells a failed call from a denied one',
      [['tool.started', { tool_call: CALL }], completed('error', { error: 'Broken.' }), END],
      { version: '6', approvals: ['c1'] },
      ['tool-output-error c1 Broken.', 'finish stop', '[DONE]'],
    ],
    [
      'ends what is open when it is cancelled',
      [['reason.started'], attempt, said('On'), answer('On'), ['turn.cancelled', {}]],
      {},
      ['start-step', 'text-start', 'text-delta On', 'text-end', 'finish-step', 'finish interrupted', '[DONE]'],
    ],
    ['is aborted in version 5', [['turn.cancelled', {}]], { version: '5' }, ['abort', '[DONE]']],
    [
      'fails with a sentence',
      [['reason.started'], ['turn.failed', { error: 'Too long.' }]],
      {},
      ['start-step', 'finish-step', 'error Too long.', '[DONE]'],
    ],
    [
      'says why it ended',
      [['turn.completed', { finish_reason: 'content_filter' }]],
      {},
      ['finish content-filter', '[DONE]'],
    ],
    ['ignores events that have no chunk', [['tool.progress', { progress: 1 }], ['act.completed']], {}, []],
  ])('%s', (_, events, options, expected) => {
    expect(chunksOf(events, options)).toEqual([START, ...expected])
  })
})
