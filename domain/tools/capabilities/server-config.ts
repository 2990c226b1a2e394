import { isRecord } from '../../../lib/is-record.ts'

/** Choice among an MCP server's tools by their names; `all` where nothing is chosen. */
export type ToolChoice = 'all' | Set<string>

/**
 * Returns which tools of an MCP server a configuration chooses. Undefined for an invalid one: it means some tools, and
 * nobody knows which.
 */
export function toolChoiceOf(config: unknown): ToolChoice | undefined {
  if (config == null) return 'all'
  if (!isRecord(config) || Object.keys(config).some((key) => key !== 'tools')) return undefined
  const { tools } = config
  if (tools == null) return 'all'
  if (!Array.isArray(tools) || !tools.every((name) => typeof name === 'string')) return undefined
  return new Set<string>(tools)
}
