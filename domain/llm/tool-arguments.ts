type ToolArguments = { arguments: Record<string, unknown>; argumentsError?: string }

/** A model's text for a call's arguments. No text at all is how several providers say "no arguments". */
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

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
