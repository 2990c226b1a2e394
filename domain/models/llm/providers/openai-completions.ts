import { createOpenAI } from '@ai-sdk/openai'
import type { ExplicitSettings, Protocol } from './protocol.ts'
import { readChat } from './streams/chat.ts'

/** Speaks Chat Completions, to OpenAI or any compatible server. */
export function openaiCompletions({ baseUrl, apiKey, model, fetch }: ExplicitSettings): Protocol {
  return {
    sdkModel: createOpenAI({ baseURL: baseUrl, apiKey, fetch }).chat(model),
    // Tool messages contain only text.
    images: 'after_tool_results',
    optionsKey: 'openai',
    // Requests have no field for thinking or signatures.
    returnedFields: { thinking: [], text: [], tool_call: [] },
    toCall: (call, effort) => ({
      ...call,
      // Sent unchanged: the SDK does not know the efforts of compatible servers' models.
      ...(effort === undefined ? {} : { providerOptions: { openai: { reasoningEffort: effort } } }),
    }),
    readStream: readChat,
  }
}
