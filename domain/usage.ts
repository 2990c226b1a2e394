import type { TokenUsage } from '../contract/common.ts'

/** The four token counters as stored in the tables. */
type Counters = { inputTokens: bigint; outputTokens: bigint; cacheReadTokens: bigint; cacheCreationTokens: bigint }

export const presentUsage = (row: Counters): TokenUsage => ({
  input_tokens: Number(row.inputTokens),
  output_tokens: Number(row.outputTokens),
  cache_read_tokens: Number(row.cacheReadTokens),
  cache_creation_tokens: Number(row.cacheCreationTokens),
})
