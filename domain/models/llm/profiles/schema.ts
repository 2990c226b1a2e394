import { z } from 'zod'
import { Modality, ReasoningEffort } from '../../../../contract/llm-models.ts'

/** USD for a million tokens, with at most six decimals, so that a token's price is a whole number of picodollars. */
const Price = z
  .number()
  .min(0)
  .max(1_000_000)
  .refine((price) => Number(price.toFixed(6)) === price, { error: 'must have at most six decimals' })

/** Prices of one call. A missing cache price is unknown. */
const Prices = z.strictObject({
  input: Price,
  output: Price,
  cache_read: Price.optional(),
  cache_write: Price.optional(),
})
export type Prices = z.infer<typeof Prices>

const Cost = z.strictObject({
  ...Prices.shape,
  /** Prices of calls with longer inputs, by the number of input tokens above which they apply. */
  tiers: z.array(z.strictObject({ above_input_tokens: z.int().min(1), ...Prices.shape })).optional(),
})

const Effort = z
  .strictObject({ values: z.array(ReasoningEffort).min(1), default: ReasoningEffort })
  .refine((effort) => effort.values.includes(effort.default), { error: 'must have its default among its values' })

/** Known facts about a model. */
export const Profile = z.strictObject({
  name: z.string().min(1),
  family: z.string().min(1),
  attachment: z.boolean(),
  reasoning: z.boolean(),
  temperature: z.boolean(),
  tool_call: z.boolean(),
  structured_output: z.boolean(),
  open_weights: z.boolean(),
  modalities: z.strictObject({ input: z.array(Modality).min(1), output: z.array(Modality).min(1) }),
  limits: z.strictObject({ context: z.int().min(1), output: z.int().min(1) }),
  cost: Cost.optional(),
  reasoning_effort: Effort.optional(),
})
export type Profile = z.infer<typeof Profile>

/** Contents of profiles.json. Keys are vendor and model: `openai/gpt-5-mini`. */
export const ProfileFile = z.strictObject({
  source: z.strictObject({
    package: z.string().min(1),
    version: z.string().regex(/^\d+\.\d+\.\d+/),
    licence: z.string().min(1),
    /** Day on which the package's authors collected the data. */
    date: z.iso.date(),
  }),
  profiles: z.record(z.string().regex(/^(openai|anthropic|google)\/[^/]+$/), Profile),
})
export type ProfileFile = z.infer<typeof ProfileFile>
