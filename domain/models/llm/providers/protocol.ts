import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { StreamReader } from './streams/reader.ts'

export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'

export type ModelSettings = {
  type: 'openai' | 'openai_completions' | 'anthropic' | 'gemini'
  /** Default: the vendor's public endpoint. */
  baseUrl: string | undefined
  /** Servers such as Ollama need none. */
  apiKey: string | undefined
  /** The provider's own id of the model. */
  model: string
  /** The provider's name in error messages. */
  providerName: string
  /** Id of the provider and of its model: the source of provider data. */
  source: string
  /** Maximum tokens of the model's answer, thinking included, if known. */
  maxOutputTokens?: number | undefined
  /** Whether the model thinks, if known. */
  isReasoning?: boolean | undefined
  fetch: typeof globalThis.fetch
}

/** Settings with all values explicit: for missing ones, the SDK would read the process's environment. */
export type ExplicitSettings = ModelSettings & { baseUrl: string; apiKey: string }

/** Wire protocol: all differences between adapters. */
export type Protocol = {
  /** Makes the requests. */
  sdkModel: LanguageModelV4
  /** Place of the images of tool results. Not every protocol or model accepts them within the results. */
  images: 'in_tool_results' | 'after_tool_results'
  /** Name of the SDK's provider in options and metadata. */
  optionsKey: 'openai' | 'anthropic' | 'google'
  /** Fields of the metadata of each kind of part that the provider needs back with the part. */
  returnedFields: Record<'thinking' | 'text' | 'tool_call', readonly string[]>
  /** Adds the protocol's own options to a call. */
  toCall: (call: LanguageModelV4CallOptions, effort: Effort | undefined) => LanguageModelV4CallOptions
  /** Creates a reader of one answer's stream. */
  readStream: () => StreamReader
}
