import type { LlmProviderType } from '../../../../contract/llm-providers.ts'
import type { Profile } from '../profiles/schema.ts'
import { fitsSubset, type Subset } from './schema-subset.ts'

const COMMON =
  '$defs $ref title description type properties required additionalProperties items anyOf enum const format'
const NUMBERS = 'minimum maximum minItems maxItems'

const keywords = (...lists: string[]): ReadonlySet<string> => new Set(lists.join(' ').split(' '))

/**
 * What each protocol takes, from the vendors' documentation and the AI SDK 7, which describes to Anthropic's models the
 * limits that Anthropic refuses. No protocol takes a recursive schema here; OpenAI would.
 */
const SUBSETS: Record<Exclude<LlmProviderType, 'llmsim'>, Subset> = {
  openai: openai(),
  openai_completions: openai(),
  anthropic: {
    keywords: keywords(COMMON, NUMBERS, 'exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength uniqueItems'),
    formats: new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid']),
    // The API takes up to 24 in all schemas of a call.
    maxOptional: 10,
  },
  gemini: {
    keywords: keywords(COMMON, NUMBERS),
    formats: new Set(['date-time', 'time', 'date']),
    maxOptional: Number.POSITIVE_INFINITY,
  },
}

function openai(): Subset {
  return {
    keywords: keywords(COMMON, NUMBERS, 'exclusiveMinimum exclusiveMaximum multipleOf'),
    formats: new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid']),
    maxOptional: 0,
  }
}

/** Matches models of Gemini that take a schema and tools in one call. */
const TAKES_BOTH = /^(models\/)?gemini-([3-9]|[1-9]\d)/

export type OutputModel = { type: LlmProviderType; name: string; profile: Profile | undefined }

/** Reports whether a model's provider makes its answer fit a schema. A host of open weights may not. */
export function isEnforced({ type, name, profile }: OutputModel, schema: Record<string, unknown>, hasTools: boolean) {
  if (type === 'llmsim' || profile?.structured_output !== true) return false
  if (type === 'openai_completions' && profile.open_weights) return false
  if (type === 'gemini' && (profile.open_weights || (hasTools && !TAKES_BOTH.test(name)))) return false
  return fitsSubset(schema, SUBSETS[type])
}
