import type { Message } from '../../../contract/messages.ts'
import type { ProviderData } from '../../../domain/models/llm/model.ts'
import type { ModelSettings } from '../../../domain/models/llm/providers/create-model.ts'
import { anthropicMessages } from '../../support/providers/anthropic-messages.ts'
import type { Content, ContentBlock } from '../../support/providers/content.ts'
import { geminiStream } from '../../support/providers/gemini-stream.ts'
import { responses } from '../../support/providers/responses.ts'
import { type FakeProvider, type ScriptedAnswer, startProvider } from '../../support/providers/scripted-server.ts'
import { type Asked, ask, messageOf, userSays } from './ask.ts'
import { protocolOf, useFakes } from './protocols.ts'
import { modelOf } from './provider-model.ts'

type Thinker = Exclude<ModelSettings['type'], 'openai_completions'>

const { start, keep } = useFakes()
const MESSAGE_ID = `message_${'1'.repeat(32)}`

/** Blocks of an answer as the vendors send them: thinking in several blocks, one of them hidden, text and two calls. */
const BLOCKS: ContentBlock[] = [
  { type: 'thinking', deltas: ['Let me', ' see 😀.'], signature: 'sig-1' },
  { type: 'redacted', data: 'hidden' },
  { type: 'thinking', deltas: ['Still.'], signature: 'sig-2' },
  { type: 'text', deltas: ['Wait', '.'], signature: 'commentary' },
  { type: 'call', id: 'c1', name: 'add', arguments: '{"a":1}', signature: 'sig-3' },
  { type: 'call', id: 'c2', name: 'now', arguments: '{}' },
]

const START: Record<Thinker, (answers: ScriptedAnswer<Content>[]) => Promise<FakeProvider<unknown>>> = {
  openai: (answers) => startProvider(responses, answers),
  anthropic: (answers) => startProvider(anthropicMessages, answers),
  gemini: (answers) => startProvider(geminiStream, answers),
}

/** Answers with the blocks, and is asked again with what a change makes of that turn. Returns what was sent then. */
async function askTwice(type: Thinker, change: (message: Message, data: ProviderData | undefined) => Change) {
  const fake = keep(await START[type]([{ blocks: BLOCKS }, { text: ['ok'] }]))
  const model = modelOf({ type, model: protocolOf(type).model, baseUrl: fake.baseUrl, source: 'acme/one' })
  const first = await ask(model, { messages: [userSays('Hi')], reasoningEffort: 'low' })
  const { message, data } = change(toMessage(first), first.finish?.providerData)
  const second = await ask(model, {
    messages: [userSays('Hi'), message, resultOf(message, 0), resultOf(message, 1)],
    providerData: new Map(data === undefined ? [] : [[message.id, data]]),
    reasoningEffort: 'low',
  })
  expect(second).toMatchObject({ error: undefined, text: 'ok' })
  return { first, sent: sentBy(fake.requests[1]?.body) }
}

type Change = { message: Message; data: ProviderData | undefined }

function toMessage({ text, thinking, calls }: Asked): Message {
  const toolCalls = calls.map(({ id, name, arguments: args }) => ({
    type: 'tool_call' as const,
    id,
    name,
    arguments: args,
  }))
  return { ...messageOf('agent', { type: 'text', text }, ...toolCalls), id: MESSAGE_ID, thinking }
}

function resultOf({ content }: Message, index: number): Message {
  const call = content.filter((part) => part.type === 'tool_call')[index]
  return messageOf('tool_result', { type: 'tool_result', tool_call_id: call?.id ?? '', result: 'done' })
}

/** Returns the parts of the agent's turn in a request, in whichever form the protocol has them. */
function sentBy(body: unknown): unknown[] {
  const { input, messages, contents } = Object(body)
  if (input !== undefined)
    return input.filter(
      (item: { type?: string; role?: string }) => item.role !== 'user' && item.type !== 'function_call_output',
    )
  return messages?.[1].content ?? contents[1].parts
}

const WHOLE: Record<Thinker, unknown[]> = {
  openai: [
    {
      type: 'reasoning',
      id: 'rs_0',
      encrypted_content: 'sig-1',
      summary: [
        { type: 'summary_text', text: 'Let me' },
        { type: 'summary_text', text: ' see 😀.' },
      ],
    },
    { type: 'reasoning', id: 'rs_1', encrypted_content: 'hidden', summary: [] },
    { type: 'reasoning', id: 'rs_2', encrypted_content: 'sig-2', summary: [{ type: 'summary_text', text: 'Still.' }] },
    { role: 'assistant', content: 'Wait.', phase: 'commentary' },
    { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a":1}' },
    { type: 'function_call', call_id: 'c2', name: 'now', arguments: '{}' },
  ],
  anthropic: [
    { type: 'thinking', thinking: 'Let me see 😀.', signature: 'sig-1' },
    { type: 'redacted_thinking', data: 'hidden' },
    { type: 'thinking', thinking: 'Still.', signature: 'sig-2' },
    { type: 'text', text: 'Wait.' },
    { type: 'tool_use', id: 'c1', name: 'add', input: { a: 1 } },
    { type: 'tool_use', id: 'c2', name: 'now', input: {} },
  ],
  gemini: [
    { text: 'Let me see 😀.', thought: true, thoughtSignature: 'sig-1' },
    { text: '', thoughtSignature: 'hidden' },
    { text: 'Still.', thought: true, thoughtSignature: 'sig-2' },
    { text: 'Wait.', thoughtSignature: 'commentary' },
    { functionCall: { id: 'c1', name: 'add', args: { a: 1 } }, thoughtSignature: 'sig-3' },
    { functionCall: { id: 'c2', name: 'now', args: {} } },
  ],
}

const BARE: Record<Thinker, unknown[]> = {
  openai: [{ role: 'assistant', content: 'Wait.' }, ...WHOLE.openai.slice(4)],
  anthropic: WHOLE.anthropic.slice(3),
  gemini: [
    { text: 'Wait.' },
    { functionCall: { id: 'c1', name: 'add', args: { a: 1 } } },
    { functionCall: { id: 'c2', name: 'now', args: {} } },
  ],
}

const TYPES: Thinker[] = ['openai', 'anthropic', 'gemini']

describe('thinking', () => {
  it.each(TYPES)('of %s goes back as it came, in its order', async (type) => {
    const { first, sent } = await askTwice(type, (message, data) => ({ message, data }))
    expect(sent).toEqual(WHOLE[type])
    expect(first.thinking).toBe(type === 'openai' ? 'Let me\n\n see 😀.\n\nStill.' : 'Let me see 😀.\n\nStill.')
    expect(JSON.stringify(first.finish?.providerData)).not.toMatch(/see|Still|Wait|add/)
  })

  it.each(TYPES)('of %s goes back from data that was stored as JSON', async (type) => {
    const { sent } = await askTwice(type, (message, data) => ({ message, data: JSON.parse(JSON.stringify(data)) }))
    expect(sent).toEqual(WHOLE[type])
  })

  it.each(TYPES)('of %s goes back with the ids that the calls have got', async (type) => {
    const { sent } = await askTwice(type, (message, data) => ({
      message: {
        ...message,
        content: message.content.map((part) => (part.type === 'tool_call' ? { ...part, id: `new_${part.id}` } : part)),
      },
      data,
    }))
    expect(sent).toEqual(JSON.parse(JSON.stringify(WHOLE[type]).replaceAll(/"(c[12])"/g, '"new_$1"')))
  })

  it.each<[string, (change: { message: Message; data: ProviderData }) => Change]>([
    ['of another model', ({ message, data }) => ({ message, data: { ...data, source: 'acme/two' } })],
    ['that is gone', ({ message }) => ({ message, data: undefined })],
    ['of another form', ({ message, data }) => ({ message, data: { ...data, blocks: ['?'] } })],
    [
      'with impossible lengths',
      ({ message, data }) => ({ message, data: { ...data, blocks: [{ type: 'text', length: -5 }] } }),
    ],
    ['of longer thinking', ({ message, data }) => ({ message: { ...message, thinking: 'Let me see' }, data })],
    [
      'of shorter thinking',
      ({ message, data }) => ({ message: { ...message, thinking: `${message.thinking}.` }, data }),
    ],
    ['without thinking', ({ message, data }) => ({ message: { ...message, thinking: null }, data })],
    [
      'of a shorter text',
      ({ message, data }) => ({
        message: { ...message, content: [{ type: 'text', text: 'Wait.' }, ...message.content.slice(1)] },
        data: { ...data, blocks: data.blocks.filter((block) => Object(block).type !== 'text') },
      }),
    ],
    [
      'of a further call',
      ({ message, data }) => ({
        message,
        data: { ...data, blocks: [...data.blocks, { type: 'tool_call', index: 2 }] },
      }),
    ],
    [
      'of the same call twice',
      ({ message, data }) => ({
        message,
        data: { ...data, blocks: [...data.blocks, { type: 'tool_call', index: 0 }] },
      }),
    ],
    ['of fewer calls', ({ message, data }) => ({ message, data: { ...data, blocks: data.blocks.slice(0, -1) } })],
  ])('%s is left out, and the text and the calls are sent', async (_what, change) => {
    for (const type of TYPES) {
      const { sent } = await askTwice(type, (message, data) =>
        change({ message, data: data ?? { source: '', blocks: [] } }),
      )
      expect(sent).toEqual(BARE[type])
    }
  })

  it.each<[Thinker, string | undefined]>([
    ['openai', undefined],
    ['anthropic', 'sig-2'],
    ['gemini', 'sig-2'],
  ])('of %s has the signature %s in its message', async (type, signature) => {
    const { first } = await askTwice(type, (message, data) => ({ message, data }))
    expect(first.parts.find((part) => part.type === 'thinking_signature')?.signature).toBe(signature)
  })
})

describe('an answer', () => {
  it.each(['openai', 'openai_completions', 'anthropic', 'gemini'] as const)(
    'of %s without thinking leaves no data',
    async (type) => {
      const toolCalls = [{ id: 'c1', name: 'add', arguments: '{}' }]
      const { model } = await start(type, [{ text: ['Wait.'], toolCalls }])
      expect((await ask(model, { messages: [userSays('Hi')] })).finish?.providerData).toBeUndefined()
    },
  )

  it.each([
    ['is too long', 'x'.repeat(3 * 1024 * 1024)],
    ['has a NUL', 'x\0x'],
    ['has half a character', 'x\ud83dx'],
  ])('leaves no data when it %s to be stored', async (_what, signature) => {
    for (const type of TYPES) {
      const fake = keep(await START[type]([{ blocks: [{ type: 'thinking', deltas: ['Hm.'], signature }] }]))
      const model = modelOf({ type, model: protocolOf(type).model, baseUrl: fake.baseUrl })
      const asked = await ask(model, { messages: [userSays('Hi')], reasoningEffort: 'low' })
      expect(asked).toMatchObject({ error: undefined, thinking: 'Hm.', finish: { providerData: undefined } })
      expect(asked.parts.map((part) => part.type)).toEqual(['thinking', 'finish'])
    }
  })

  it('of openai_completions has thinking, which its requests have no place for', async () => {
    const { fake, model } = await start('openai_completions', [
      { thinking: ['Hm.'], text: ['Four.'] },
      { text: ['ok'] },
    ])
    const first = await ask(model, { messages: [userSays('Hi')] })
    await ask(model, { messages: [userSays('Hi'), toMessage(first), userSays('?')] })
    expect(first).toMatchObject({ thinking: 'Hm.', finish: { providerData: undefined } })
    expect(JSON.stringify(fake.requests[1]?.body)).not.toContain('Hm.')
  })
})
