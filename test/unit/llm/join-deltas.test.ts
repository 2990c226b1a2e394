import { type DeltaForm, joinDeltas } from '../../../domain/models/llm/providers/join-deltas.ts'

const FORM: DeltaForm = { before: /"delta": ?\{"content": ?"/, after: /^"\}/ }

const frame = (chunk: unknown): string => `data: ${JSON.stringify(chunk)}\n\n`
const chunkOf = (delta: object, more: object = {}) => frame({ id: 'x', choices: [{ index: 0, delta }], ...more })
const text = (content: string, more?: object): string => chunkOf({ content }, more)
const joined = (events: string[]): string => joinDeltas(events.join(''), FORM)

const HOSTILE = [
  '"',
  '\\',
  '\\"',
  '\n\n',
  '\r',
  '\u2028',
  '\ud83d',
  '\ude00',
  '</script>',
  '\u0000',
  '"}',
  'data: ',
  '',
]

it('joins what differs in a piece of the text alone', () => {
  expect(joined([text('Hel'), text('lo '), text('you')])).toBe(text('Hello you'))
})

it('keeps every text, however it is cut', () => {
  for (const first of HOSTILE) {
    for (const second of HOSTILE) {
      const events = joined([text(first), text(second), text('end')])
      expect(JSON.parse(events.slice(6)).choices[0].delta.content).toBe(`${first}${second}end`)
    }
  }
})

it('ignores what numbers and pads the events', () => {
  const padded = (sequence_number: number, obfuscation: string, content: string) =>
    frame({ sequence_number, choices: [{ delta: { content } }], obfuscation })
  expect(joined([padded(1, 'aZ0', 'a'), padded(2, '', 'b')])).toBe(padded(1, 'aZ0', 'ab'))
})

it.each<[string, string[]]>([
  ['events with something else between them', [text('a'), ': hello\n\n', text('b')]],
  ['other fields', [text('a'), text('b', { usage: { completion_tokens: 2 } })]],
  [
    'a text beside something else',
    [
      chunkOf({ content: '', tool_calls: [{ arguments: '0' }] }),
      chunkOf({ content: '', tool_calls: [{ arguments: '0' }] }),
    ],
  ],
  ['a text after its end', [text('a'), frame({ choices: [{ delta: {}, finish_reason: 'stop' }] })]],
  ['names of events that differ', [`event: a\n${text('a')}`, `event: b\n${text('b')}`]],
  ['long events', [text('a'.repeat(5000)), text('b')]],
  [
    'a text without its end',
    ['data: {"choices":[{"delta":{"content":"a\n\n', 'data: {"choices":[{"delta":{"content":"b\n\n'],
  ],
  ['an event without its end', [text('a'), text('b').slice(0, -1)]],
  ['lines that end otherwise', [text('a'), text('b')].map((event) => event.replaceAll('\n', '\r\n'))],
])('leaves as they are: %s', (_what, events) => {
  expect(joined(events)).toBe(events.join(''))
})
