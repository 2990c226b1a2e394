import { anthropic } from '../../../domain/models/llm/providers/anthropic.ts'
import { gemini } from '../../../domain/models/llm/providers/gemini.ts'
import { openaiCompletions } from '../../../domain/models/llm/providers/openai-completions.ts'
import { openaiResponses } from '../../../domain/models/llm/providers/openai-responses.ts'
import type { ExplicitSettings, Protocol } from '../../../domain/models/llm/providers/protocol.ts'
import { anthropicMessages } from '../../support/providers/anthropic-messages.ts'
import { chatCompletions } from '../../support/providers/chat-completions.ts'
import type { Content } from '../../support/providers/content.ts'
import { geminiStream } from '../../support/providers/gemini-stream.ts'
import { responses } from '../../support/providers/responses.ts'
import type { WireFormat } from '../../support/providers/scripted-server.ts'
import { protocolOf } from './protocols.ts'

export type Type = ExplicitSettings['type']
type Named = { create: (settings: ExplicitSettings) => Protocol; format: WireFormat<unknown, Content> }

export const TYPES: Record<Type, Named> = {
  openai: { create: openaiResponses, format: responses as unknown as Named['format'] },
  openai_completions: { create: openaiCompletions, format: chatCompletions as unknown as Named['format'] },
  anthropic: { create: anthropic, format: anthropicMessages as unknown as Named['format'] },
  gemini: { create: gemini, format: geminiStream as unknown as Named['format'] },
}

export const CONTENTS: [what: string, content: Content][] = [
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

/** Contents that Chat Completions cannot send. */
export const THOUGHTS: [what: string, content: Content][] = [
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

export const settingsOf = (type: Type, fetch: typeof globalThis.fetch): ExplicitSettings => {
  const { model } = protocolOf(type)
  return { type, model, baseUrl: 'http://127.0.0.1/v1', apiKey: 'k', providerName: 'Acme', source: 'acme/one', fetch }
}

/** Returns the text of a provider's stream. `change` is made to each event. */
export function record(type: Type, content: Content, change: (event: object) => object = (event) => event): string {
  const { format } = TYPES[type]
  const request = { path: '', headers: {}, body: { model: 'm' }, closed: Promise.resolve('answered' as const) }
  const changed = (event: unknown) => (typeof event === 'object' && event !== null ? change(event) : event)
  const events = [...format.toEvents(content, request), ...format.toFinish(content, request)]
  return events.map((event) => format.frame(changed(event))).join('')
}
