import { z } from 'zod'

/** Duration, which JSON has in milliseconds. */
export const milliseconds = z.int().min(0).meta({ format: 'int64' })
/** Size of a content. */
export const sizeBytes = z.int().min(0).meta({ format: 'int64' })

/** Sums of tokens: an agent may pass 32 bits. */
const tokens = z.int().min(0).meta({ format: 'int64' })

/** Tokens of one call, one turn, one session or one agent, summed. */
export const TokenUsage = z
  .object({
    input_tokens: tokens,
    output_tokens: tokens,
    cache_read_tokens: tokens.nullish(),
    cache_creation_tokens: tokens.nullish(),
  })
  .meta({ id: 'TokenUsage' })
export type TokenUsage = z.infer<typeof TokenUsage>

/** Cost in USD as a decimal string. Null when a price is unknown. */
export const CostUsd = z
  .string()
  .regex(/^\d+(\.\d+)?$/)
  .meta({ id: 'CostUsd', description: 'USD, as a decimal string. Null when the price of a model call is unknown.' })

export const DateTime = z.iso.datetime()

/** Returns the schema of a list's answer, which is named after its items. */
export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item) }).meta({ id: `ListResponse_${item.meta()?.id}` })

/** Encoder for lengths in UTF-8: limits are about what is stored and sent, not about characters. */
const bytes = new TextEncoder()
const isUpTo = (text: string, maxBytes: number): boolean =>
  text.length * 3 <= maxBytes || bytes.encode(text).length <= maxBytes

const upTo = (maxBytes: number) =>
  z.refine<string>((text) => isUpTo(text, maxBytes), { error: `must be at most ${maxBytes} bytes of UTF-8` })

/** Returns the schema of a text of at most `maxBytes` of UTF-8, which the document shows as that many characters. */
export const textUpTo = (maxBytes: number) => z.string().check(upTo(maxBytes)).meta({ maxLength: maxBytes })

/** Returns the schema of a display name of 1 to `maxBytes` bytes of UTF-8. */
export const nameUpTo = (maxBytes: number) =>
  z.string().trim().min(1, { error: 'must not be empty' }).check(upTo(maxBytes)).meta({ maxLength: maxBytes })

/**
 * Returns the schema of a field that other services have and this one does not. Ignored, it would do harm unseen. The
 * document does not show it.
 */
export const unsupported = (way: string) =>
  z
    .codec(z.null({ error: `is not supported; ${way}` }), z.undefined(), {
      decode: () => undefined,
      encode: () => null,
    })
    .optional()
    .meta({ unsupported: true })

export const isUnsupported = (schema: unknown): boolean =>
  schema instanceof z.ZodType && schema.meta()?.unsupported === true

// A string that is too long is refused before it is written as JSON, which takes far longer.
const isJsonUpTo = (value: unknown, maxBytes: number): boolean =>
  (typeof value !== 'string' || value.length <= maxBytes) && isUpTo(JSON.stringify(value), maxBytes)

/** Returns the schema with a limit on the size of its value as JSON. An absent value has no size. */
export const jsonUpTo = <T extends z.ZodType>(schema: T, maxBytes: number): T =>
  schema.refine((value) => value === undefined || isJsonUpTo(value, maxBytes), {
    error: `must be at most ${maxBytes} bytes of JSON`,
  })
