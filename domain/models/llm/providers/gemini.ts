import { createGoogle } from '@ai-sdk/google'
import { ModelError } from '../model.ts'
import { clean } from '../provider-failure.ts'
import { withoutBlankText } from './prompt.ts'
import type { Effort, ExplicitSettings, Protocol } from './protocol.ts'
import { readGemini } from './streams/gemini-content.ts'

const SIGNATURE = ['thoughtSignature']

/** Speaks Gemini's API, streamGenerateContent. */
export function gemini(settings: ExplicitSettings): Protocol {
  const { baseUrl, apiKey, model, fetch } = settings
  return {
    sdkModel: createGoogle({ baseURL: baseUrl, apiKey, fetch })(model),
    // Only models from the third generation on accept images within results.
    images: 'after_tool_results',
    optionsKey: 'google',
    returnedFields: { thinking: SIGNATURE, text: SIGNATURE, tool_call: SIGNATURE },
    toCall: (call, effort) => {
      refuseOtherPaths(settings)
      return { ...call, prompt: withoutBlankText(call.prompt), ...toThinking(effort, settings) }
    },
    readStream: readGemini,
  }
}

/** An id is a part of the URL, so it must not lead to another path. Ids of tuned models have a slash. */
const MODEL_ID = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/

function refuseOtherPaths({ model, providerName }: ExplicitSettings): void {
  if (MODEL_ID.test(model)) return
  throw new ModelError(`${providerName} has no model with the id "${clean(model)}".`, { retryable: false })
}

/**
 * Requests an effort and the thinking itself, which Gemini omits by default. Models that never think refuse the
 * request.
 */
function toThinking(effort: Effort | undefined, { isReasoning }: ExplicitSettings) {
  const includeThoughts = effort === undefined ? isReasoning === true : effort !== 'none'
  return {
    ...(effort === undefined ? {} : { reasoning: effort }),
    ...(includeThoughts ? { providerOptions: { google: { thinkingConfig: { includeThoughts } } } } : {}),
  }
}
