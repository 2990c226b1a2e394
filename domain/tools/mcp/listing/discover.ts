import { ToolError } from '../../capabilities/capability.ts'
import { type Discovered, type McpEndpoint, McpFailure } from '../protocol/client.ts'
import { type ToServers, withConnection } from '../protocol/with-connection.ts'
import { readTools } from './read-tools.ts'

const WORDS = { late: 'did not list its tools', large: 'listed its tools in' }

/** Reads the tools of a server on a separate connection. See `McpClient.discover`. */
export async function discover(connecting: ToServers, endpoint: McpEndpoint, signal: AbortSignal): Promise<Discovered> {
  try {
    return await withConnection(connecting, endpoint, WORDS, signal, (connection, ended) =>
      readTools(connection, ended, connecting.times),
    )
  } catch (error) {
    throw error instanceof ToolError ? new McpFailure(error.message) : error
  }
}
