import type { ModelPart } from '../../../domain/models/llm/model.ts'
import { readAnswer } from '../../../domain/models/llm/providers/answer.ts'
import { anthropic } from '../../../domain/models/llm/providers/anthropic.ts'
import { gemini } from '../../../domain/models/llm/providers/gemini.ts'
import { openaiCompletions } from '../../../domain/models/llm/providers/openai-completions.ts'
import { openaiResponses } from '../../../domain/models/llm/providers/openai-responses.ts'
import type { ExplicitSettings, Protocol } from '../../../domain/models/llm/providers/protocol.ts'
import { readParts } from '../../../domain/models/llm/providers/streams/parts.ts'
import { anthropicMessages } from '../../support/providers/anthropic-messages.ts'
import { chatCompletions } from '../../support/providers/chat-completions.ts'
import type { Content } from '../../support/providers/content.ts'
import { geminiStream } from '../../support/providers/gemini-stream.ts'
import { responses } from '../../support/providers/responses.ts'
import type { WireFormat } from '../../support/providers/scripted-server.ts'
import { createRandom } from '../../support/random.ts'
import { protocolOf } from './protocols.ts'

type Type = ExplicitSettings['type']
type Named = { create: (settings: ExplicitSettings) => Protocol; format: WireFormat<unknown, Content> }

const TYPES: Record<Type, Named> = {
  openai: { create: openaiResponses, format: responses as unknown as Named['format'] },
  openai_completions: { create: openaiCompletions, format: chatCompletions as unknown as Named['format'] },
  anthropic: { create: anthropic, format: anthropicMessages as unknown as Named['format'] },
  gemini: { create: gemini, format: geminiStream as unknown as Named['format'] },
}

const CONTENTS: [what: string, content: Content][] = [
  ['text', { text: ['Hel', 'lo ', '😀', '"\\\n'] }],
  ['a call without arguments', { toolCalls: [{ id: 'c1', name: 'now', arguments: '' }] }],
  [
    'text and two calls',
    {
      text: ['Wait.'],
      toolCalls: [
        { id: 'c1', name: 'add', arguments: '{"a": 1, "b": [2, "é"]}' },
        { id: 'c2', name: 'now', arguments: '{}' },
      ],
    },
  ],
  ['an unusual end', { text: ['Half'], finishReason: 'a_new_reason' }],
]

/** What Chat Completions cannot send. */
const THOUGHTS: [what: string, content: Content][] = [
  [
    'several blocks of thinking, text and signed calls',
    {
      blocks: [
        { type: 'thinking', deltas: ['Let me', ' see 😀.'], signature: 'sig-1' },
        { type: 'redacted', data: 'hidden' },
        { type: 'thinking', deltas: ['Still.'], signature: 'sig-2' },
        { type: 'text', deltas: ['Wait', '.'], signature: 'commentary' },
        { type: 'call', id: 'c1', name: 'add', arguments: '{"a":1}', signature: 'sig-3' },
        { type: 'call', id: 'c2', name: 'now', arguments: '{}' },
        { type: 'text', deltas: ['So.'] },
      ],
    },
  ],
]

const settingsOf = (type: Type, fetch: typeof globalThis.fetch): ExplicitSettings => {
  const { model } = protocolOf(type)
  return { type, model, baseUrl: 'http://127.0.0.1/v1', apiKey: 'k', providerName: 'Acme', source: 'acme/one', fetch }
}

/** Returns the text of a provider's stream. `change` is made to each event. */
function record(type: Type, content: Content, change: (event: object) => object = (event) => event): string {
  const { format } = TYPES[type]
  const request = { path: '', headers: {}, body: { model: 'm' }, closed: Promise.resolve('answered' as const) }
  const changed = (event: unknown) => (typeof event === 'object' && event !== null ? change(event) : event)
  const events = [...format.toEvents(content, request), ...format.toFinish(content, request)]
  return events.map((event) => format.frame(changed(event))).join('')
}

async function collect(parts: AsyncIterable<ModelPart>): Promise<unknown[]> {
  const joined: ModelPart[] = []
  for await (const part of parts) {
    const last = joined.at(-1)
    if (part.type === 'progress') continue
    if (last !== undefined && 'delta' in last && 'delta' in part && last.type === part.type) last.delta += part.delta
    else joined.push({ ...part })
  }
  return joined
}

/** Reads a recording with the AI SDK. */
async function readBySdk(type: Type, recording: string): Promise<unknown[]> {
  const headers = { 'content-type': 'text/event-stream' }
  const settings = settingsOf(type, async () => new Response(recording, { headers }))
  const protocol = TYPES[type].create(settings)
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }]
  const { stream } = await protocol.sdkModel.doStream(protocol.toCall({ prompt }, undefined))
  return collect(readAnswer(stream, protocol, settings))
}

/** Reads a recording as the service does, in pieces of the sizes that `nextSize` gives. */
async function readHere(type: Type, recording: string, nextSize: () => number): Promise<unknown[]> {
  const bytes = Buffer.from(recording)
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    const size = nextSize()
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  const settings = settingsOf(type, fetch)
  const protocol = TYPES[type].create(settings)
  return collect(readAnswer(readParts(ReadableStream.from(pieces), protocol.readStream()), protocol, settings))
}

const withMore = (event: object): object => ({ zebra: { choices: 'none' }, ...event, more: [{ delta: 'not this' }] })
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  )
}

describe.each(Object.keys(TYPES) as Type[])('the reader of %s', (type) => {
  const contents = type === 'openai_completions' ? CONTENTS : [...CONTENTS, ...THOUGHTS]
  it.each(contents)('reads %s as the AI SDK does, however it arrives', async (_what, content) => {
    const recording = record(type, content)
    const expected = await readBySdk(type, recording)
    expect(expected.at(-1)).toMatchObject({ type: 'finish' })
    const random = createRandom(7)
    const whole = () => Number.POSITIVE_INFINITY
    const arrivals: [string, () => number][] = [
      [recording, whole],
      [recording, () => 1],
      [recording, () => 1 + Math.floor(random() * 20)],
      [recording.replaceAll(/\r?\n/g, '\r\n'), () => 1 + Math.floor(random() * 20)],
      [recording.replaceAll(/(?<=\n)(?=data:)/g, ': comment\nretry: 5\n'), whole],
      [`: hello\n\n${recording}`, whole],
      [record(type, content, withMore), whole],
      [record(type, content, (event) => reversed(event) as object), whole],
    ]
    for (const [text, nextSize] of arrivals) expect(await readHere(type, text, nextSize)).toEqual(expected)
  })
})
