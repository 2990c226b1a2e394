import type { Model } from '../../../domain/models/llm/model.ts'
import type { ModelSettings } from '../../../domain/models/llm/providers/create-model.ts'
import { anthropicMessages } from '../../support/providers/anthropic-messages.ts'
import { chatCompletions } from '../../support/providers/chat-completions.ts'
import type { Content } from '../../support/providers/content.ts'
import { geminiStream } from '../../support/providers/gemini-stream.ts'
import { responses } from '../../support/providers/responses.ts'
import { type FakeProvider, type ScriptedAnswer, startProvider } from '../../support/providers/scripted-server.ts'
import { API_KEY, modelOf } from './provider-model.ts'

type Answers = ScriptedAnswer<Omit<Content, 'blocks' | 'usage'>>[]
export type Answer = Answers[number]

/** One kind of provider, with what its requests and its fake have of their own. */
type ProtocolCase = {
  type: ModelSettings['type']
  model: string
  url: string
  path: string
  /** Header with the key, and its value. */
  credential: [name: string, value: string]
  start: (answers: Answers) => Promise<FakeProvider<unknown>>
  /** Error object that the provider sends in mid-stream, of a kind that is over after a while. */
  overloaded: object
}

export const PROTOCOLS: ProtocolCase[] = [
  {
    type: 'openai',
    model: 'gpt-5',
    url: 'https://api.openai.com/v1/responses',
    path: '/v1/responses',
    credential: ['authorization', `Bearer ${API_KEY}`],
    start: (answers) => startProvider(responses, answers),
    overloaded: { type: 'error', code: 'server_is_overloaded', message: 'Overloaded', param: null, sequence_number: 9 },
  },
  {
    type: 'openai_completions',
    model: 'some-chat-model',
    url: 'https://api.openai.com/v1/chat/completions',
    path: '/v1/chat/completions',
    credential: ['authorization', `Bearer ${API_KEY}`],
    start: (answers) => startProvider(chatCompletions, answers),
    overloaded: { error: { message: 'Overloaded', type: 'server_error', code: 503 } },
  },
  {
    type: 'anthropic',
    model: 'claude-sonnet-4-5',
    url: 'https://api.anthropic.com/v1/messages',
    path: '/v1/messages',
    credential: ['x-api-key', API_KEY],
    start: (answers) => startProvider(anthropicMessages, answers),
    overloaded: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
  },
  {
    type: 'gemini',
    model: 'gemini-2.5-pro',
    url: 'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
    path: '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse',
    credential: ['x-goog-api-key', API_KEY],
    start: (answers) => startProvider(geminiStream, answers),
    overloaded: { error: { code: 503, message: 'Overloaded', status: 'UNAVAILABLE' } },
  },
]

export function protocolOf(type: ModelSettings['type']): ProtocolCase {
  const protocol = PROTOCOLS.find((candidate) => candidate.type === type)
  if (protocol === undefined) throw new Error(`There is no protocol ${type}.`)
  return protocol
}

/** Makes a table of all protocols with a body for each, or the part of it that a test looks at. */
export const withBodies = (bodies: Record<ModelSettings['type'], object>) =>
  PROTOCOLS.map((protocol) => ({ ...protocol, body: bodies[protocol.type] }))

/** Starts fakes and creates models of them. Returns what a test file needs, which closes them after each test. */
export function useFakes() {
  const fakes: FakeProvider<unknown>[] = []
  afterEach(async () => {
    await Promise.all(fakes.splice(0).map((fake) => fake.close()))
  })
  const keep = <Body>(fake: FakeProvider<Body>): FakeProvider<Body> => {
    fakes.push(fake)
    return fake
  }
  const start = async (
    type: ModelSettings['type'],
    answers: Answers,
    settings: Partial<ModelSettings> = {},
  ): Promise<{ fake: FakeProvider<unknown>; model: Model }> => {
    const { start, model } = protocolOf(type)
    const fake = keep(await start(answers))
    return { fake, model: modelOf({ type, model, baseUrl: fake.baseUrl, ...settings }) }
  }
  return { start, keep }
}
