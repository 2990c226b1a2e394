import { isRecord } from '../../../lib/is-record.ts'

type ToolArguments = { arguments: Record<string, unknown>; argumentsError?: string }

/** Parses a model's text of a call's arguments. Several providers send an empty text for "no arguments". */
export function parseToolArguments(text: string): ToolArguments {
  if (text.trim() === '') return { arguments: {} }
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return { arguments: value }
    return { arguments: {}, argumentsError: 'The arguments are JSON, but not an object.' }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return { arguments: {}, argumentsError: `The arguments are not JSON: ${reason.slice(0, 200)}` }
  }
}
