import type { TokenUsage } from '../../contract/kit/common.ts'
import type { Prisma } from '../../prisma/generated/client.ts'

/** The four token counters as stored in the tables. */
type Counters = { inputTokens: bigint; outputTokens: bigint; cacheReadTokens: bigint; cacheCreationTokens: bigint }

export const presentUsage = (row: Counters): TokenUsage => ({
  input_tokens: Number(row.inputTokens),
  output_tokens: Number(row.outputTokens),
  cache_read_tokens: Number(row.cacheReadTokens),
  cache_creation_tokens: Number(row.cacheCreationTokens),
})

/** Presents a cost in USD without an exponent. */
export const presentCost = (cost: Prisma.Decimal | null): string | null => cost?.toFixed() ?? null
