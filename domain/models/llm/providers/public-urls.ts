import type { LlmProviderType } from '../../../../contract/llm-providers.ts'

const OPENAI = 'https://api.openai.com/v1'

/** The providers' own public addresses, for providers without a base URL. */
export const PUBLIC_URLS: Record<Exclude<LlmProviderType, 'llmsim'>, string> = {
  openai: OPENAI,
  openai_completions: OPENAI,
  anthropic: 'https://api.anthropic.com/v1',
  gemini: 'https://generativelanguage.googleapis.com/v1beta',
}
