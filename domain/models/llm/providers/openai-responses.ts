import { createOpenAI } from '@ai-sdk/openai'
import type { Effort, ExplicitSettings, Protocol } from './protocol.ts'
import { readResponses } from './streams/responses.ts'

/** Speaks OpenAI's Responses API. OpenAI stores nothing, so thinking comes as encrypted items, which are sent back. */
export function openaiResponses({ baseUrl, apiKey, model, fetch, isReasoning }: ExplicitSettings): Protocol {
  return {
    sdkModel: createOpenAI({ baseURL: baseUrl, apiKey, fetch }).responses(model),
    images: 'in_tool_results',
    optionsKey: 'openai',
    returnedFields: { thinking: ['itemId', 'reasoningEncryptedContent'], text: ['phase'], tool_call: [] },
    toCall: (call, effort) => ({
      ...call,
      ...(effort === undefined ? {} : { reasoning: effort }),
      providerOptions: { openai: { store: false, ...toReasoning(effort, isReasoning) } },
    }),
    readStream: readResponses,
  }
}

/**
 * Returns options for thinking. With an effort, the SDK is told that the model thinks: it does not know all such
 * models, and silently drops the effort of the others.
 */
function toReasoning(effort: Effort | undefined, isReasoning: boolean | undefined) {
  const forceReasoning = effort === undefined ? isReasoning : true
  return {
    ...(forceReasoning === undefined ? {} : { forceReasoning }),
    ...(effort === undefined ? {} : { reasoningSummary: effort === 'none' ? null : 'auto' }),
  }
}
