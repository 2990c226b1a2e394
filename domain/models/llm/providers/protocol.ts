import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'

export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'

export type ModelSettings = {
  type: 'openai' | 'openai_completions' | 'anthropic' | 'gemini'
  /** Without it, the vendor's public endpoint. */
  baseUrl: string | undefined
  /** Servers such as Ollama take none. */
  apiKey: string | undefined
  /** The provider's own id of the model. */
  model: string
  /** The provider's name in error messages. */
  providerName: string
  /** Id of the provider and of its model: the source of the data that answers leave for later calls. */
  source: string
  /** Limit of the model on an answer's tokens, thinking included, when known. */
  maxOutputTokens?: number | undefined
  /** Tells whether the model thinks, when known. */
  isReasoning?: boolean | undefined
  fetch: typeof globalThis.fetch
}

/** Settings with everything explicit: for what is undefined, the SDK would look into the process's environment. */
export type ExplicitSettings = ModelSettings & { baseUrl: string; apiKey: string }

/** One kind of wire protocol: everything in which an adapter differs from the others. */
export type Protocol = {
  sdkModel: LanguageModelV4
  /** Place of the images of tool results. Not every protocol, or not every model, takes them within the results. */
  images: 'in_tool_results' | 'after_tool_results'
  /** Name of the SDK's provider in options and metadata. */
  optionsKey: 'openai' | 'anthropic' | 'google'
  /** Fields of the metadata of each kind of part that the provider needs back with the part. */
  returnedFields: Record<'thinking' | 'text' | 'tool_call', readonly string[]>
  /** Adds the protocol's own options to a call. */
  toCall: (call: LanguageModelV4CallOptions, effort: Effort | undefined) => LanguageModelV4CallOptions
  /** Reads thinking that the SDK does not report from a raw chunk. */
  readThinking?: (rawChunk: unknown) => string
}
