import { ApiError } from 'agent-session-client'

/** Returns the service's sentence about a field, with the label instead of the name. Undefined if it is about another. */
export function sentenceAt(error: unknown, field: string, label: string): string | undefined {
  if (!(error instanceof ApiError) || !`${error.field}.`.startsWith(`${field}.`)) return undefined
  return error.message.startsWith(`${field}: `) ? `${label} ${error.message.slice(field.length + 2)}` : error.message
}
