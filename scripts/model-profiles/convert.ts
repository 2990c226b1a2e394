import { z } from 'zod'
import { Modality, ReasoningEffort } from '../../contract/llm-models.ts'
import { type Prices, Profile } from '../../domain/models/llm/profiles/schema.ts'
import {
  canStopThinking,
  defaultEffort,
  familyOf,
  furtherModalities,
  hasOpenWeights,
  isForChat,
  mayTakeTemperature,
  supportsStructuredOutput,
} from './facts.ts'

const PackagePrices = z.object({ input: z.number(), output: z.number(), cacheRead: z.number(), cacheWrite: z.number() })

/** A chat model as the package describes it. Its other fields are not read. */
const PackageModel = z.object({
  id: z.string(),
  name: z.string(),
  reasoning: z.boolean(),
  input: z.array(Modality),
  cost: PackagePrices.extend({
    tiers: z.array(PackagePrices.extend({ inputTokensAbove: z.int() })).optional(),
  }),
  contextWindow: z.int(),
  maxTokens: z.int(),
  /** Name that the provider gives to a level of thinking; null when the model has no such level. */
  thinkingLevelMap: z.record(z.string(), z.string().nullable()).optional(),
  compat: z
    .object({
      supportsStrictMode: z.boolean().optional(),
      supportsStrictTools: z.boolean().optional(),
      supportsTemperature: z.boolean().optional(),
      forceAdaptiveThinking: z.boolean().optional(),
    })
    .optional(),
})
type PackageModel = z.infer<typeof PackageModel>

/** Models by API and by `<type>:<id>`. */
const PackageFile = z.record(z.string(), z.record(z.string(), z.unknown()))

export type Vendor = 'openai' | 'anthropic' | 'google'

/** Converts the package's files to profiles with sorted keys. `router` is its file of OpenRouter's models. */
export function toProfiles(files: Record<Vendor, unknown>, router: unknown): Record<string, Profile> {
  const contexts = new Map(chatModels(router).map(({ id, contextWindow }) => [id, contextWindow]))
  const profiles = (['openai', 'anthropic', 'google'] as const).flatMap((vendor) =>
    chatModels(files[vendor])
      .filter(({ id }) => isForChat(id))
      .map(
        (model) => [`${vendor}/${model.id}`, toProfile(vendor, model, contexts.get(`${vendor}/${model.id}`))] as const,
      ),
  )
  return Object.fromEntries(profiles.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function chatModels(file: unknown): PackageModel[] {
  const entries = Object.values(PackageFile.parse(file)).flatMap((models) => Object.entries(models))
  return entries.filter(([key]) => key.startsWith('chat:')).map(([, model]) => PackageModel.parse(model))
}

function toProfile(vendor: Vendor, model: PackageModel, routerContext: number | undefined): Profile {
  const { id, reasoning, compat } = model
  const effort = toEffort(vendor, model)
  const input = [...model.input, ...furtherModalities(id)]
  const strict = vendor === 'google' || compat?.supportsStrictMode === true || compat?.supportsStrictTools === true
  return Profile.parse({
    name: model.name.replace(/ \(latest\)$/, ''),
    family: familyOf(id),
    attachment: input.length > 1,
    reasoning,
    // OpenAI's models refuse a temperature while they reason.
    temperature:
      vendor === 'openai'
        ? !reasoning || effort?.default === 'none'
        : compat?.supportsTemperature !== false && mayTakeTemperature(id),
    // All chat models of the package can call tools.
    tool_call: true,
    structured_output: strict && supportsStructuredOutput(id),
    open_weights: hasOpenWeights(id),
    modalities: { input, output: ['text'] },
    limits: { context: toContext(model, routerContext), output: model.maxTokens },
    cost: toCost(model.cost),
    reasoning_effort: effort,
  })
}

/** The package ends a context where a price tier begins, to keep its users in the cheaper one. OpenRouter's does not. */
function toContext({ contextWindow, cost }: PackageModel, routerContext: number | undefined): number {
  const isCapped = cost.tiers?.some((tier) => tier.inputTokensAbove === contextWindow) === true
  return isCapped ? (routerContext ?? contextWindow) : contextWindow
}

function toCost({ tiers, ...prices }: PackageModel['cost']): Profile['cost'] {
  const cost = toPrices(prices)
  if (tiers === undefined) return cost
  return {
    ...cost,
    tiers: tiers.map(({ inputTokensAbove, ...tier }) => ({ above_input_tokens: inputTokensAbove, ...toPrices(tier) })),
  }
}

/** The package writes 0 for a cache price that it does not know. */
function toPrices({ input, output, cacheRead, cacheWrite }: z.infer<typeof PackagePrices>): Prices {
  return {
    input,
    output,
    ...((cacheRead > 0 || input === 0) && { cache_read: cacheRead }),
    ...((cacheWrite > 0 || input === 0) && { cache_write: cacheWrite }),
  }
}

function toEffort(vendor: Vendor, model: PackageModel): Profile['reasoning_effort'] {
  if (!model.reasoning) return undefined
  const values = ReasoningEffort.options.filter((effort) => hasEffort(vendor, model, effort))
  const byDefault = defaultEffort(model.id, values)
  return byDefault === undefined ? undefined : { values, default: byDefault }
}

/** Reads the package's map of levels. A level that it does not name exists, except xhigh, and except at OpenAI. */
function hasEffort(vendor: Vendor, model: PackageModel, effort: ReasoningEffort): boolean {
  if (effort === 'none' && !canStopThinking(model.id)) return false
  const mapped = model.thinkingLevelMap?.[effort === 'none' ? 'off' : effort]
  if (mapped !== undefined) return mapped !== null
  if (vendor === 'openai' || effort === 'xhigh') return false
  // Claude's adaptive thinking has no minimal effort.
  return effort !== 'minimal' || model.compat?.forceAdaptiveThinking !== true
}
