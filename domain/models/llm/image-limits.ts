import type { LlmProviderType } from '../../../contract/llm-providers.ts'

/** Maximum size of an image in base64: 5 MiB at Anthropic, more elsewhere. */
export const MAX_IMAGE_BASE64 = 5 * 1024 * 1024

/** Returns the longest edge in pixels that a provider's models use. They scale larger images down themselves. */
export const longestEdgeFor = (type: LlmProviderType): number => (type === 'anthropic' ? 1568 : 2048)
