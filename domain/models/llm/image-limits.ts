import type { LlmProviderType } from '../../../contract/llm-providers.ts'

/** Limit on an image as it is sent, in base64: Anthropic takes 5 MiB, the others more. */
export const MAX_IMAGE_BASE64 = 5 * 1024 * 1024

/** Returns the longest edge in pixels that a provider's models make use of. They scale larger images down themselves. */
export const longestEdgeFor = (type: LlmProviderType): number => (type === 'anthropic' ? 1568 : 2048)
