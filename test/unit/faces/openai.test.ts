import type { TurnEvent } from '../../../api/faces/events.ts'
import type { CompletionRequest } from '../../../api/faces/openai/endpoints.ts'
import {
  callIdIn,
  conversationOf,
  decisionOf,
  isTask,
  readIntent,
  resultsFor,
  sessionOfCall,
  withHistory,
} from '../../../api/faces/openai/request.ts'
import { createPieces, inChunks, inOne, type Piece } from '../../../api/faces/openai/translate.ts'
import type { RequestedCall } from '../../../contract/turns.ts'

type Given = [type: TurnEvent['type'], data?: object]
const HEAD = { id: 'chatcmpl-1', created: 1, model: 'm' }

const created = (streamsText: boolean) =>
  createPieces({ streamsText, callId: (id) => `${id}.s`, answersAt: 'POST /answers' })
const eventOf = ([type, data = {}]: Given) => ({ type, data }) as TurnEvent
const piecesOf = (events: Given[], streamsText = false): Piece[] => {
  const pieces = created(streamsText)
  return events.flatMap((event) => (pieces.isOver ? [] : pieces.event(eventOf(event))))
}
const summary = (pieces: Piece[]): string[] =>
  pieces.map((piece) => {
    if (piece.type === 'finish') return `finish ${piece.reason} ${piece.usage.total_tokens}`
    if (piece.type === 'tool_call') return `tool_call ${piece.id} ${piece.name} ${piece.arguments}`
    return `${piece.type} ${'text' in piece ? piece.text : `${piece.code} ${piece.message}`}`
  })

const attempt: Given = ['output.message.started']
const said = (accumulated: string): Given => ['output.message.delta', { accumulated }]
const thought = (accumulated: string): Given => ['reason.thinking.delta', { accumulated }]
const answer = (text: string, more: object = {}): Given => [
  'output.message.completed',
  { message: { content: [{ type: 'text', text }], ...more }, usage: { input_tokens: 2, output_tokens: 1 } },
]
const asked = (kind: string, name = 'paint'): Given => [
  'tool.call_requested',
  { tool_calls: [{ id: 'c1', name, kind, arguments: { message: 'Red?' } }] },
]
const END: Given = ['turn.completed', {}]

describe('a turn for Chat Completions', () => {
  it.each<[string, Given[], boolean, string[]]>([
    ['holds text', [attempt, said('On'), answer('One.'), END], false, ['content One.', 'finish stop 3']],
    ['streams text', [attempt, said('On'), answer('One.'), END], true, ['content On', 'content e.', 'finish stop 3']],
    [
      'leaves out a failed attempt',
      [attempt, said('Bad'), attempt, answer('Good'), END],
      false,
      ['content Good', 'finish stop 3'],
    ],
    [
      'shows thinking',
      [attempt, answer('One.', { thinking: 'Hm' }), END],
      false,
      ['reasoning Hm\n', 'content One.', 'finish stop 3'],
    ],
    [
      'continues the text of a failed attempt, also from its middle',
      [
        attempt,
        said('Once'),
        said('Once, tw'),
        attempt,
        said('On'),
        said('Once, two.'),
        answer('Once, two. Three.'),
        END,
      ],
      true,
      ['content Once', 'content , tw', 'content o.', 'content  Three.', 'finish stop 3'],
    ],
    [
      'ends with an error where the text of a failed attempt cannot be continued',
      [attempt, said('Once'), attempt, said('On'), said('Only'), answer('Only two.'), END],
      true,
      ['content Once', expect.stringMatching(/^error text_changed The answer began anew/)],
    ],
    [
      'ends with an error where the answer is shorter than the text of a failed attempt',
      [attempt, said('Once, two'), attempt, said('Once'), answer('Once'), ['turn.cancelled']],
      true,
      ['content Once, two', expect.stringMatching(/^error text_changed/)],
    ],
    [
      'leaves out thoughts that differ from what a failed attempt thought',
      [attempt, thought('Hm'), attempt, thought('H'), thought('Hmm'), attempt, thought('Oh'), answer('One.'), END],
      true,
      ['reasoning Hm', 'reasoning m', 'content One.', 'finish stop 3'],
    ],
    [
      'streams thinking',
      [attempt, thought('Hm'), answer('One.', { thinking: 'Hm' }), END],
      true,
      ['reasoning Hm', 'content One.', 'finish stop 3'],
    ],
    [
      'names the tools of the service, and joins the texts of its steps',
      [
        attempt,
        answer('One.'),
        [
          'act.started',
          {
            tool_calls: [
              { name: 'a', policy: 'auto', display_name: 'Tool' },
              { name: 'b', policy: 'client_side' },
            ],
          },
        ],
        attempt,
        answer('Two.'),
        END,
      ],
      false,
      ['content One.', 'reasoning Uses Tool.\n', 'content \n\nTwo.', 'finish stop 6'],
    ],
    [
      'gives the client its calls',
      [asked('client_tool')],
      false,
      ['tool_call c1.s paint {"message":"Red?"}', 'finish tool_calls 0'],
    ],
    [
      'asks for approval in words',
      [answer('So.'), asked('approval')],
      false,
      [
        'content So.',
        'content \n\nApproval is needed for paint with {"message":"Red?"}. Answer "approve" or "deny", or use POST /answers.',
        'finish stop 3',
      ],
    ],
    [
      "puts a tool's question into words",
      [asked('client_tool', 'mcp_elicitation')],
      false,
      ['content A tool asks: Red? Answer at POST /answers.', 'finish stop 0'],
    ],
    ['says that it was cut', [['turn.completed', { finish_reason: 'length' }]], false, ['finish length 0']],
    [
      'says that it was filtered',
      [['turn.completed', { finish_reason: 'content_filter' }]],
      false,
      ['finish content_filter 0'],
    ],
    ['ends when it is cancelled', [['turn.cancelled']], false, ['finish stop 0']],
    ['fails', [['turn.failed', { error: 'Too long.', error_code: 'llm_error' }]], false, ['error llm_error Too long.']],
  ])('%s', (_, events, streamsText, expected) => {
    expect(summary(piecesOf(events, streamsText))).toEqual(expected)
  })

  it('has the chunks that clients expect', () => {
    const chunks = inChunks(created(false), HEAD, true)
    const lines = [chunks.begin(), chunks.event(eventOf(answer('One.'))), chunks.event(eventOf(asked('client_tool')))]
    const parsed = lines.flat().map(({ line }) => (line === '[DONE]' ? line : JSON.parse(line)))
    const choice = (delta: object, finish_reason: string | null = null) => ({
      ...HEAD,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    })
    expect(parsed).toEqual([
      choice({ role: 'assistant', content: '' }),
      choice({ content: 'One.' }),
      choice({ tool_calls: [{ index: 0, id: 'c1.s', type: 'function', function: { name: 'paint', arguments: '' } }] }),
      choice({ tool_calls: [{ index: 0, function: { arguments: '{"message":"Red?"}' } }] }),
      choice({}, 'tool_calls'),
      {
        ...HEAD,
        object: 'chat.completion.chunk',
        choices: [],
        usage: { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 },
      },
      '[DONE]',
    ])
  })

  it('is one answer without a stream', () => {
    expect(inOne(piecesOf([answer('', { thinking: 'Hm' }), asked('client_tool')]), HEAD)).toMatchObject({
      object: 'chat.completion',
      choices: [
        {
          message: {
            role: 'assistant',
            content: null,
            reasoning_content: 'Hm\n',
            tool_calls: [
              { id: 'c1.s', type: 'function', function: { name: 'paint', arguments: '{"message":"Red?"}' } },
            ],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { total_tokens: 3 },
    })
  })
})

const request = (messages: object[], more: object = {}) => ({ model: 'm', messages, ...more }) as CompletionRequest
const user = (content: unknown) => ({ role: 'user', content })

describe('a request for a completion', () => {
  it.each<[string, Record<string, string>, object, string | undefined]>([
    ['our header', { 'X-Session-Id': 'a', 'X-OpenWebUI-Chat-Id': 'b' }, {}, 'a'],
    ["Open WebUI's header", { 'X-OpenWebUI-Chat-Id': 'b' }, { metadata: { session_id: 'c' } }, 'b'],
    ['metadata', {}, { metadata: { session_id: 'c' } }, 'c'],
    ['nothing', {}, { user: 'u', prompt_cache_key: 'k' }, undefined],
    ['a chat that is not kept', { 'X-OpenWebUI-Chat-Id': 'local:1' }, {}, undefined],
    ['a variable that was not filled in', { 'X-Session-Id': '{{CHAT_ID}}' }, {}, undefined],
  ])('names its session by %s', (_, headers, more, expected) => {
    expect(conversationOf((name) => headers[name] ?? '', request([user('x')], more))).toBe(expected)
  })

  it('refuses a name that is too long', () => {
    expect(() => conversationOf(() => 'x'.repeat(256), request([]))).toThrow(/at most 255 ASCII characters/)
  })

  it.each<[boolean, string, CompletionRequest]>([
    [true, 'title_generation', request([user('x')], { stream: true })],
    [true, '', request([user('### Task:\nGenerate a title')])],
    [false, '', request([user('### Task:\nDo it')], { stream: true })],
    [false, '{{TASK}}', request([user('x')])],
    [false, '', request([user('x')])],
    [false, '', request([user('### Task:\nPlan my trip'), user('And then?')])],
  ])('is a task: %s, with the header "%s"', (expected, header, given) => {
    expect(isTask(() => header, given)).toBe(expected)
  })

  it.each<[string, object[], object]>([
    ['text', [user('old'), user('Hi')], { kind: 'message', content: [{ type: 'text', text: 'Hi' }] }],
    [
      'text and images',
      [
        user([
          { type: 'text', text: 'Hi' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          { type: 'image_url', image_url: { url: 'https://x/y.png' } },
        ]),
      ],
      {
        kind: 'message',
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'image', base64: 'AA==', media_type: 'image/png' },
          { type: 'image', url: 'https://x/y.png' },
        ],
      },
    ],
    [
      'results',
      [
        { role: 'tool', tool_call_id: 'old', content: '0' },
        { role: 'assistant' },
        { role: 'tool', tool_call_id: 'a', content: '1' },
        { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: '2' }] },
      ],
      {
        kind: 'results',
        results: [
          { id: 'a', text: '1' },
          { id: 'b', text: '2' },
        ],
      },
    ],
  ])('adds %s', (_, messages, expected) => {
    expect(readIntent(request(messages))).toEqual(expected)
  })

  it.each<[string, object[], RegExp]>([
    ['an answer', [{ role: 'assistant', content: 'x' }], /^messages\.0\.role: must be user or tool/],
    ['nothing', [user('')], /^messages\.0\.content: must have text or an image/],
    ['audio', [user([{ type: 'input_audio' }])], /^messages\.0\.content\.0\.type: must be text or image_url/],
    ['an image without an address', [user([{ type: 'image_url' }])], /url: must be a string/],
    [
      'other data',
      [user([{ type: 'image_url', image_url: { url: 'data:text/plain,x' } }])],
      /must be an image in base64/,
    ],
    ['a result without a call', [{ role: 'tool', content: 'x' }], /^messages\.0\.tool_call_id: is required/],
  ])('may not end with %s', (_, messages, sentence) => {
    expect(() => readIntent(request(messages))).toThrow(sentence)
  })

  it('quotes what a session has not seen, the newest of it first', () => {
    const last = [{ type: 'text' as const, text: 'Now' }]
    const messages = [
      user('x'.repeat(500_000)),
      { role: 'system', content: 'S' },
      { role: 'assistant', content: 'A' },
      user('Now'),
    ]
    const quoted = 'The conversation so far:\n\nAssistant: A\n\nThe user now says:\n\n'
    expect(withHistory(request(messages), last)).toEqual([{ type: 'text', text: `${quoted}Now` }])
    const image = [{ type: 'image' as const, url: 'https://x/y.png' }]
    expect(withHistory(request(messages), image)).toEqual([{ type: 'text', text: quoted }, ...image])
    expect(withHistory(request([user('Now')]), last)).toEqual(last)
  })

  it('answers only calls of the client that wait', () => {
    const calls = [
      { id: 'a', kind: 'client_tool' },
      { id: 'b', kind: 'approval' },
    ] as RequestedCall[]
    const results = ['a', 'b', 'c'].map((id) => ({ id, text: id }))
    expect(resultsFor(calls, results)).toEqual([{ tool_call_id: 'a', result: 'a' }])
  })

  it('decides with one word', () => {
    const decide = (text: string) => decisionOf([{ type: 'text', text }])
    expect([' Approve\n', 'deny', 'I approve', ''].map(decide)).toEqual([true, false, undefined, undefined])
  })

  it('finds the session of a call in its id', () => {
    const hex = '0'.repeat(32)
    expect(sessionOfCall(callIdIn(hex, 'a.b'))).toEqual({ id: 'a.b', sessionHex: hex })
    expect(sessionOfCall('a.b')).toBeUndefined()
  })
})
