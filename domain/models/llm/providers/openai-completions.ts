import { createOpenAI } from '@ai-sdk/openai'
import { isRecord } from '../../../../lib/is-record.ts'
import { type DeltaForm, joinDeltas } from './join-deltas.ts'
import { fetchMapped } from './map-lines.ts'
import { createRepair } from './openai-repair.ts'
import type { ExplicitSettings, Protocol } from './protocol.ts'

/** Speaks Chat Completions, to OpenAI or any compatible server. */
export function openaiCompletions({ baseUrl, apiKey, model, fetch }: ExplicitSettings): Protocol {
  return {
    sdkModel: createOpenAI({ baseURL: baseUrl, apiKey, fetch: fetchMapped(fetch, createLineMap) }).chat(model),
    // Tool messages contain only text.
    images: 'after_tool_results',
    optionsKey: 'openai',
    // Requests have no field for thinking or signatures.
    returnedFields: { thinking: [], text: [], tool_call: [] },
    toCall: (call, effort) => ({
      ...call,
      // The only source of compatible servers' thinking, see readThinking.
      includeRawChunks: true,
      // Sent unchanged: the SDK does not know the efforts of compatible servers' models.
      ...(effort === undefined ? {} : { providerOptions: { openai: { reasoningEffort: effort } } }),
    }),
    readThinking,
  }
}

const DELTA: DeltaForm = {
  before: /"delta": ?\{(?:"role": ?"assistant", ?)?"(?:content|reasoning_content|reasoning)": ?"/,
  after: /^"\}/,
}

function createLineMap(): (lines: string) => string {
  const repair = createRepair()
  return (lines) => joinDeltas(repair(lines), DELTA)
}

/**
 * Reads the thinking of a raw chunk. OpenAI never streams thinking over this protocol, so the SDK drops the fields that
 * other servers use: `reasoning_content` (DeepSeek, vLLM, llama.cpp) or `reasoning` (OpenRouter, Ollama). The SDK holds
 * everything back until the first text or call, so all thinking arrives at once, just before it.
 */
function readThinking(rawChunk: unknown): string {
  const [choice] = isRecord(rawChunk) && Array.isArray(rawChunk.choices) ? rawChunk.choices : []
  const delta = isRecord(choice) && isRecord(choice.delta) ? choice.delta : {}
  const thinking = delta.reasoning_content ?? delta.reasoning
  return typeof thinking === 'string' ? thinking : ''
}
