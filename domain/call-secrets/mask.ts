import { isRecord } from '../../lib/is-record.ts'
import type { Tool } from '../capabilities/capability.ts'
import type { ModelToolCall } from '../llm/model.ts'

/** Text that events hold in the place of a secret value. */
export const MASK = '[secret]'

/** Secret values of a call's arguments or of its result, by the name of the property. */
export type Hidden = Record<string, unknown>

/** Value as events hold it. `hidden` is what they leave out; absent when that is nothing. */
type Masked<T> = { value: T; hidden?: Hidden }

/** Call of a model as events hold it. */
export type MaskedCall = ModelToolCall & { hidden?: Hidden }

/**
 * Takes the secrets out of a call, by the marks of its tool. A property that the tool does not declare counts as secret,
 * because it may be a misspelt one. Text that is no JSON is not quoted.
 */
export function maskCall(tool: Tool | undefined, call: ModelToolCall): MaskedCall {
  const marked = tool?.secrets?.arguments
  if (tool === undefined || !marked?.length) return call
  const { properties } = tool.parameters
  const declared = isRecord(properties) ? Object.keys(properties) : []
  const isSecret = (name: string) => marked.includes(name) || !declared.includes(name)
  const { value, ...hidden } = mask(call.arguments, isSecret)
  const error = call.argumentsError === undefined ? {} : { argumentsError: 'The arguments are not a JSON object.' }
  return { ...call, arguments: value, ...hidden, ...error }
}

/** Takes the secrets out of a result, given as JSON, by the marks of its tool. One that is no object has none. */
export function maskResult(tool: Tool, text: string): Masked<string> {
  const marked = tool.secrets?.results
  if (!marked?.length) return { value: text }
  const result: unknown = JSON.parse(text)
  if (!isRecord(result)) return { value: text }
  const { value, ...hidden } = mask(result, (name) => marked.includes(name))
  return { value: JSON.stringify(value), ...hidden }
}

function mask(value: Record<string, unknown>, isSecret: (name: string) => boolean): Masked<Record<string, unknown>> {
  const hidden = Object.entries(value).filter(([name]) => isSecret(name))
  if (hidden.length === 0) return { value }
  // Spread, because assigning a property named __proto__ would not add it.
  const masks = Object.fromEntries(hidden.map(([name]) => [name, MASK]))
  return { value: { ...value, ...masks }, hidden: Object.fromEntries(hidden) }
}

/** Whether a result, as events hold it, has a secret. */
export const isMaskedResult = (result: unknown): boolean => isRecord(result) && Object.values(result).includes(MASK)
