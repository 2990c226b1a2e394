import { createAnthropic } from '@ai-sdk/anthropic'
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider'
import { withoutBlankText } from './prompt.ts'
import type { Effort, ExplicitSettings, Protocol } from './protocol.ts'
import { readAnthropic } from './streams/anthropic-messages.ts'

/** Speaks Anthropic's Messages API, to Anthropic or a compatible server. */
export function anthropic(settings: ExplicitSettings): Protocol {
  const { baseUrl, apiKey, model, fetch } = settings
  return {
    sdkModel: createAnthropic({ baseURL: baseUrl, apiKey, fetch })(model),
    images: 'in_tool_results',
    optionsKey: 'anthropic',
    returnedFields: { thinking: ['signature', 'redactedData'], text: [], tool_call: [] },
    toCall: (call, effort) => {
      const { thinking, ...limits } = toLimits(settings, effort, call.maxOutputTokens)
      return {
        ...call,
        ...withCachePoints(withoutBlankText(call.prompt), call.tools ?? []),
        ...limits,
        // Arguments of tools are not streamed. Streamed arguments may be invalid JSON.
        providerOptions: { anthropic: { toolStreaming: false, ...toOutput(call), ...thinking } },
      }
    },
    readStream: readAnthropic,
  }
}

/** Keeps the SDK from a tool of its own for an output schema: only schemas that fit the API come here. */
const toOutput = ({ responseFormat }: LanguageModelV4CallOptions) =>
  responseFormat === undefined ? {} : { structuredOutputMode: 'outputFormat' }

/** Maximum tokens of an answer, which this protocol requires, if neither the profile nor the SDK knows the limit. */
const DEFAULT_MAX_TOKENS = 8192
const MIN_THINKING_TOKENS = 1024
/** Share of the limit for thinking, by effort. The rest is for the answer. */
const THINKING_SHARES: Record<Exclude<Effort, 'none'>, number> = {
  minimal: 0.02,
  low: 0.1,
  medium: 0.3,
  high: 0.6,
  xhigh: 0.8,
}

/** Matches Claude's models whose limits and ways of thinking the SDK knows: from the fourth generation on. */
const IS_KNOWN = /claude-(?!instant|v?[123]\b)/

/** Matches known models that think within a budget, to which the SDK gives a share of the model's limit. */
const THINKS_IN_BUDGET = /claude-[a-z]+-4(?!-[6-9])/

/**
 * Returns the limit on tokens and on thinking within it. For models unknown to the SDK, it would add the tokens for
 * thinking and exceed the limit of the model, and for models that think within a budget the limit of the call, `callLimit`.
 */
function toLimits(
  { model, maxOutputTokens }: ExplicitSettings,
  effort: Effort | undefined,
  callLimit: number | undefined,
) {
  const isOwn = callLimit === undefined || !THINKS_IN_BUDGET.test(model)
  if (IS_KNOWN.test(model) && isOwn) return { maxOutputTokens: callLimit ?? maxOutputTokens, reasoning: effort }
  const limit = callLimit ?? maxOutputTokens ?? DEFAULT_MAX_TOKENS
  if (effort === undefined) return { maxOutputTokens: limit }
  // A budget must be below the limit.
  if (effort === 'none' || limit <= MIN_THINKING_TOKENS)
    return { maxOutputTokens: limit, thinking: { thinking: { type: 'disabled' } } }
  const budgetTokens = Math.max(MIN_THINKING_TOKENS, Math.round(limit * THINKING_SHARES[effort]))
  // The SDK adds the budget to the limit again.
  return {
    maxOutputTokens: Math.max(1, limit - budgetTokens),
    thinking: { thinking: { type: 'enabled', budgetTokens } },
  }
}

const CACHE_POINT: SharedV4ProviderOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }
/**
 * Number of the user's turns whose end is a cache point. The last is for the next call, the previous one was the last
 * of the previous call: the search for cached prefixes looks back 20 blocks at most.
 */
const CACHED_TURNS = 2

/** Marks the prefixes to be cached: the tools with the system prompt, and the conversation. */
function withCachePoints(
  prompt: LanguageModelV4Prompt,
  tools: NonNullable<LanguageModelV4CallOptions['tools']>,
): Pick<LanguageModelV4CallOptions, 'prompt' | 'tools'> {
  const isTurn = (index: number) => prompt[index]?.role === 'user' || prompt[index]?.role === 'tool'
  const ends = [...prompt.keys()].filter((index) => isTurn(index) && !isTurn(index + 1)).slice(-CACHED_TURNS)
  const hasSystemPrompt = prompt[0]?.role === 'system'
  return {
    prompt: prompt.map((message, index) =>
      message.role === 'system' || ends.includes(index) ? { ...message, providerOptions: CACHE_POINT } : message,
    ),
    tools: tools.map((tool, index) =>
      tool.type === 'function' && !hasSystemPrompt && index === tools.length - 1
        ? { ...tool, providerOptions: CACHE_POINT }
        : tool,
    ),
  }
}
