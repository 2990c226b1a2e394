/** Facts that the package does not carry, from the vendors' documentation as named at each. */
import type { Modality, ReasoningEffort } from '../../contract/llm-models.ts'

/** Models that answer no ordinary chat. */
const NOT_FOR_CHAT = /deep-research|computer-use|robotics/
const OPEN_WEIGHTS = /^(?:gemma|gpt-oss)-/
/** Words of a name that say nothing about the family. */
const NOT_FAMILY = /\d|^(?:preview|latest|it|customtools)$/

/** https://developers.openai.com/api/docs/models: models from before gpt-4o-2024-08-06, and two of the pro models. */
const NO_STRUCTURED_OUTPUT = /^gpt-(?:4$|4-|4o-2024-05-13$|5\.[24]-pro)/

/** https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking: always thinks, so takes no temperature. */
const NO_TEMPERATURE = /^claude-fable-/

/** https://ai.google.dev/gemini-api/docs/thinking: thinking cannot be turned off. */
const ALWAYS_THINKS = /^gemini-2\.5-pro/

/** Efforts of calls that name none, the first that a model has. Models of other names take medium. */
const DEFAULT_EFFORTS: [RegExp, ReasoningEffort[]][] = [
  // https://developers.openai.com/api/docs/guides/reasoning; from gpt-5.5 on it is medium again.
  [/^gpt-5\.[124](?:-|$)/, ['none', 'medium']],
  // https://platform.claude.com/docs/en/build-with-claude/effort: thinking is off unless asked for, and effort is high.
  [/^claude-/, ['none', 'high']],
  // https://ai.google.dev/gemini-api/docs/thinking
  [/^gemini-3\.[15]-flash-lite/, ['minimal']],
  [/^gemini-3(?:\.1)?-(?:pro|flash-preview)/, ['high']],
]

export const isForChat = (id: string): boolean => !NOT_FOR_CHAT.test(id)

export const hasOpenWeights = (id: string): boolean => OPEN_WEIGHTS.test(id)

/** Returns the family of a model: `claude-sonnet` for `claude-sonnet-4-5-20250929`. */
export function familyOf(id: string): string {
  const words = id.replace(/^o\d/, 'o').split('-')
  return words.filter((word) => !NOT_FAMILY.test(word)).join('-') || id
}

export const supportsStructuredOutput = (id: string): boolean => !NO_STRUCTURED_OUTPUT.test(id)

export const mayTakeTemperature = (id: string): boolean => !NO_TEMPERATURE.test(id)

export const canStopThinking = (id: string): boolean => !ALWAYS_THINKS.test(id)

/** Returns a model's effort by default. It is always one of the given ones. */
export function defaultEffort(id: string, efforts: ReasoningEffort[]): ReasoningEffort | undefined {
  const [, preferred] = DEFAULT_EFFORTS.find(([pattern]) => pattern.test(id)) ?? []
  return [...(preferred ?? []), 'medium' as const].find((effort) => efforts.includes(effort)) ?? efforts.at(-1)
}

/** Input besides text and images; https://ai.google.dev/gemini-api/docs/models: all Gemini models take audio and video. */
export const furtherModalities = (id: string): Modality[] => (id.startsWith('gemini-') ? ['audio', 'video'] : [])
