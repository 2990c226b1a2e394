import { isRecord } from '../../../lib/is-record.ts'

/** Selection of an MCP server's tools by name; `all` by default. */
export type ToolChoice = 'all' | Set<string>

/**
 * Returns the tools of an MCP server that a configuration selects. Undefined for an invalid configuration, whose
 * selection is unknown.
 */
export function toolChoiceOf(config: unknown): ToolChoice | undefined {
  if (config == null) return 'all'
  if (!isRecord(config) || Object.keys(config).some((key) => key !== 'tools')) return undefined
  const { tools } = config
  if (tools == null) return 'all'
  if (!Array.isArray(tools) || !tools.every((name) => typeof name === 'string')) return undefined
  return new Set<string>(tools)
}
