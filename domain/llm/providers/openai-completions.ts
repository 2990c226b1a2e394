import { createOpenAI } from '@ai-sdk/openai'
import { z } from 'zod'
import { repairStream } from './openai-repair.ts'
import type { ExplicitSettings, Protocol } from './protocol.ts'

/** Speaks Chat Completions, to OpenAI or any compatible server. */
export function openaiCompletions({ baseUrl, apiKey, model, fetch }: ExplicitSettings): Protocol {
  return {
    sdkModel: createOpenAI({ baseURL: baseUrl, apiKey, fetch: fetchRepaired(fetch) }).chat(model),
    // Its tool messages contain only text.
    images: 'after_tool_results',
    optionsKey: 'openai',
    // Its requests have no field for thinking or signatures.
    returnedFields: { thinking: [], text: [], tool_call: [] },
    toCall: (call, effort) => ({
      ...call,
      // The only access to the thinking of compatible servers, see readThinking.
      includeRawChunks: true,
      // Sent as it is: which efforts a model of a compatible server knows, the SDK cannot tell.
      ...(effort === undefined ? {} : { providerOptions: { openai: { reasoningEffort: effort } } }),
    }),
    readThinking,
  }
}

const fetchRepaired =
  (fetch: ExplicitSettings['fetch']): ExplicitSettings['fetch'] =>
  async (input, init) => {
    const response = await fetch(input, init)
    return response.ok && response.body !== null ? new Response(repairStream(response.body), response) : response
  }

const RawChunk = z.object({
  choices: z.array(
    z.object({
      delta: z.object({ reasoning_content: z.string().nullish(), reasoning: z.string().nullish() }).nullish(),
    }),
  ),
})

/**
 * Reads the thinking of a raw chunk. OpenAI never streams thinking over this protocol, so the SDK drops the fields that
 * other servers use: `reasoning_content` (DeepSeek, vLLM, llama.cpp) or `reasoning` (OpenRouter, Ollama). The SDK holds
 * everything back until the first text or call, so all thinking arrives at once, just before it.
 */
function readThinking(rawChunk: unknown): string {
  const parsed = RawChunk.safeParse(rawChunk)
  const delta = parsed.data?.choices[0]?.delta
  return delta?.reasoning_content ?? delta?.reasoning ?? ''
}
