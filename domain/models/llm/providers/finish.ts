import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { ModelError, type ModelPart } from '../model.ts'
import { clean } from '../provider-failure.ts'
import { cutOff, type Provider } from './call-failure.ts'

type SdkFinish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>
type FinishPart = Extract<ModelPart, { type: 'finish' }>

/**
 * Words of Chat Completions for the reasons that all providers know. Any other reason stays as the provider gave it, and
 * does not fail the call.
 */
const FINISH_REASONS: Partial<Record<LanguageModelV4FinishReason['unified'], string>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
}

export function toFinish({ finishReason, usage }: SdkFinish, { apiKey }: Provider): FinishPart {
  const { inputTokens, outputTokens } = usage
  return {
    type: 'finish',
    usage: {
      input_tokens: toCount(inputTokens.total) ?? 0,
      output_tokens: toCount(outputTokens.total) ?? 0,
      cache_read_tokens: toCount(inputTokens.cacheRead),
      cache_creation_tokens: toCount(inputTokens.cacheWrite),
    },
    finishReason: FINISH_REASONS[finishReason.unified] ?? clean(finishReason.raw ?? finishReason.unified, apiKey),
  }
}

/**
 * Throws if the provider did not finish its answer: the SDK ends every stream with a finish part, but only a finished
 * stream has a raw reason or one of the common ones. Also throws if the whole answer was blocked, which would otherwise
 * look like silence.
 */
export function refuseFailedFinish(
  { finishReason: { raw, unified } }: SdkFinish,
  { isEmpty }: { isEmpty: boolean },
  provider: Provider,
): void {
  const { providerName, apiKey } = provider
  const reason = raw === undefined ? '' : `: ${clean(raw, apiKey)}`
  if (raw === undefined && FINISH_REASONS[unified] === undefined) throw cutOff(provider)
  if (unified === 'error') {
    const ownWords = `${providerName} broke off its answer.`
    throw new ModelError(`${providerName} broke off its answer${reason}.`, { ownWords, retryable: true })
  }
  if (unified === 'content-filter' && isEmpty) {
    const ownWords = `${providerName} blocked the answer.`
    throw new ModelError(`${providerName} blocked the answer${reason}.`, { ownWords, retryable: false })
  }
}

/** Far more tokens than one call can use. Sums of such counts are still exact numbers. */
const MAX_TOKENS = 1_000_000_000

/**
 * Converts a provider's count to a whole number within limits. Some report more cached tokens than prompt tokens, which
 * makes the rest negative.
 */
const toCount = (tokens: number | undefined): number | undefined =>
  tokens === undefined || Number.isNaN(tokens) ? undefined : Math.min(MAX_TOKENS, Math.max(0, Math.round(tokens)))
