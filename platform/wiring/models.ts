import type { Deps } from '../../domain/deps.ts'
import { predefinedProviders } from '../../domain/models/llm/predefined.ts'
import type { GuardOptions } from '../../lib/outgoing/guard.ts'
import { createGuardedFetch } from '../../lib/outgoing/guarded-fetch.ts'
import type { Config } from '../config.ts'

/** Largest answer of a provider: some events for each token of the longest text that a turn accepts. */
const MAX_BYTES = 256 * 1024 * 1024
/** Time beyond the turn's own limit, so that the turn reports a silent model. */
const MARGIN_MS = 10_000
/** Longest time that tokens wait for others. Text is recorded and shown every 100 ms at most. */
const JOIN_MS = 30

/** Builds the predefined providers, and the connections to all providers. */
export function createModels(
  config: Config,
  guard: GuardOptions,
): { models: Deps['models']; close: () => Promise<void> } {
  const silenceMs = config.LLM_IDLE_TIMEOUT_SECS * 1000 + MARGIN_MS
  const limits = {
    headersTimeoutMs: silenceMs,
    idleTimeoutMs: silenceMs,
    maxBytes: MAX_BYTES,
    joinMs: JOIN_MS,
    // No call waits for the end of another.
    maxSocketsPerOrigin: config.MAX_MODEL_CALLS,
  }
  // The operator's providers may be on a private network. The two agents share no connection.
  const trusted = createGuardedFetch({ ...limits, ...guard, allowPrivateNetwork: true })
  const checked = createGuardedFetch({ ...limits, ...guard })
  return {
    models: {
      predefined: predefinedProviders({
        openaiApiKey: config.DEFAULT_OPENAI_API_KEY,
        openaiBaseUrl: config.DEFAULT_OPENAI_BASE_URL,
        openaiModel: config.DEFAULT_OPENAI_MODEL,
        anthropicApiKey: config.DEFAULT_ANTHROPIC_API_KEY,
        anthropicModel: config.DEFAULT_ANTHROPIC_MODEL,
        geminiApiKey: config.DEFAULT_GEMINI_API_KEY,
        geminiModel: config.DEFAULT_GEMINI_MODEL,
      }),
      fetchOf: ({ isPredefined }) => (isPredefined ? trusted.fetch : checked.fetch),
    },
    close: async () => {
      await Promise.allSettled([trusted.close(), checked.close()])
    },
  }
}
