import { readFileSync } from 'node:fs'
import type { LlmModelProfile, ReasoningEffort } from '../../../../contract/llm-models.ts'
import type { LlmProviderType } from '../../../../contract/llm-providers.ts'
import { type Profile, ProfileFile } from './schema.ts'

const VENDORS = { openai: 'openai', openai_completions: 'openai', anthropic: 'anthropic', gemini: 'google' }
const DATE_OR_ALIAS = /-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/
const EFFORT_NAMES: Record<ReasoningEffort, string> = {
  none: 'None',
  minimal: 'Minimal',
  low: 'Low',
  medium: 'Medium',
  high: 'High',
  xhigh: 'Extra high',
}

let loaded: Map<string, Profile> | undefined

/** Returns the profile of a provider's model. Undefined for an unknown model. */
export function findProfile(providerType: LlmProviderType, modelName: string): Profile | undefined {
  if (providerType === 'llmsim') return simulatorProfile(modelName)
  const profiles = loadProfiles()
  const key = possibleKeys(providerType, modelName).find((candidate) => profiles.has(candidate))
  const profile = key === undefined ? undefined : profiles.get(key)
  // Any host may serve open weights, at its own price.
  if (providerType === 'openai_completions' && profile?.open_weights === true) return { ...profile, cost: undefined }
  return profile
}

/** Presents a profile. Price tiers and the price of cache writes are not part of the interface. */
export function presentProfile({ cost, reasoning_effort: effort, ...facts }: Profile): LlmModelProfile {
  return {
    ...facts,
    cost: cost && { input: cost.input, output: cost.output, cache_read: cost.cache_read },
    reasoning_effort: effort && {
      values: effort.values.map((value) => ({ value, name: EFFORT_NAMES[value] })),
      default: effort.default,
    },
  }
}

/** Reads the file on first use, so that starting does not wait for it. */
function loadProfiles(): Map<string, Profile> {
  if (loaded === undefined) {
    const text = readFileSync(new URL('./profiles.json', import.meta.url), 'utf8')
    loaded = new Map(Object.entries(ProfileFile.parse(JSON.parse(text)).profiles))
  }
  return loaded
}

/** Lists the keys that a model may have, the most specific first. */
function possibleKeys(providerType: Exclude<LlmProviderType, 'llmsim'>, modelName: string): string[] {
  const name = modelName.replace(/^models\//, '')
  const keys = [`${VENDORS[providerType]}/${name}`]
  // Routers such as OpenRouter name a model by vendor, and Anthropic's versions with a dot.
  if (providerType === 'openai_completions') keys.push(name, name.replaceAll('.', '-'))
  return [...keys, ...keys.map((key) => key.replace(DATE_OR_ALIAS, ''))]
}

function simulatorProfile(modelName: string): Profile | undefined {
  if (!modelName.startsWith('llmsim-')) return undefined
  return {
    name: modelName,
    family: 'llmsim',
    attachment: true,
    reasoning: true,
    temperature: false,
    tool_call: true,
    structured_output: false,
    open_weights: false,
    modalities: { input: ['text', 'image'], output: ['text'] },
    limits: { context: 128_000, output: 100_000 },
    cost: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
  }
}
