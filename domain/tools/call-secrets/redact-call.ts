import { isRecord } from '../../../lib/is-record.ts'
import type { ModelToolCall } from '../../models/llm/model.ts'
import type { Tool } from '../capabilities/capability.ts'

/** Text in events instead of a secret value. */
export const MASK = '[secret]'

/** Secret values of a call's arguments or of its result, by the name of the property. */
export type Hidden = Record<string, unknown>

/** Maximum JSON size of one call's secrets, above any tool's limits. */
const MAX_HIDDEN_BYTES = 1024 * 1024

/** Value as stored in events. `hidden` has its secrets, if there are any. */
type Redacted<T> = { value: T; hidden?: Hidden | undefined }

/** Call of a model as stored in events. */
export type RedactedCall = ModelToolCall & { hidden?: Hidden | undefined }

/**
 * Removes the secrets from a call, according to its tool's marks. If the tool has marks, undeclared properties are
 * secret, and so are objects and lists: a model may have put a marked property into the wrong place. If the tool is
 * unknown, perhaps because of a misspelt name, all properties are secret. Invalid JSON is not quoted.
 */
export function redactCall(tool: Tool | undefined, call: ModelToolCall): RedactedCall {
  const marked = tool?.secrets?.arguments ?? []
  if (tool !== undefined && marked.length === 0) return call
  const properties = tool?.parameters.properties
  const declared = isRecord(properties) ? Object.keys(properties) : []
  const { value, hidden } = redactFields(
    call.arguments,
    (name, value) => marked.includes(name) || !declared.includes(name) || (typeof value === 'object' && value !== null),
  )
  const redacted = { ...call, arguments: value }
  if (call.argumentsError !== undefined) return { ...redacted, argumentsError: 'The arguments are not a JSON object.' }
  if (hidden === undefined || Buffer.byteLength(JSON.stringify(hidden)) <= MAX_HIDDEN_BYTES)
    return { ...redacted, hidden }
  return { ...redacted, argumentsError: 'The arguments have more than 1 MiB of secrets; pass smaller ones.' }
}

/**
 * Removes the secrets from a result, given as JSON, according to its tool's marks. Only a JSON object can have secrets.
 */
export function redactResult(tool: Tool, text: string): Redacted<string> {
  const marked = tool.secrets?.results
  if (!marked?.length) return { value: text }
  const result: unknown = JSON.parse(text)
  if (!isRecord(result)) return { value: text }
  const { value, hidden } = redactFields(result, (name) => marked.includes(name))
  return { value: JSON.stringify(value), hidden }
}

function redactFields(
  value: Record<string, unknown>,
  isSecret: (name: string, value: unknown) => boolean,
): Redacted<Record<string, unknown>> {
  const hidden = Object.entries(value).filter(([name, inner]) => isSecret(name, inner))
  if (hidden.length === 0) return { value }
  // Spread, because assigning a property named __proto__ would not add it.
  const masks = Object.fromEntries(hidden.map(([name]) => [name, MASK]))
  return { value: { ...value, ...masks }, hidden: Object.fromEntries(hidden) }
}

/** Whether a stored result has a secret. */
export const isRedactedResult = (result: unknown): boolean => isRecord(result) && Object.values(result).includes(MASK)
