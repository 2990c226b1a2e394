import { type CallToolRequest, ProtocolError, type RequestOptions } from '@modelcontextprotocol/client'
import { ANY_RESULT } from './any-result.ts'
import type { Connection } from './connection.ts'
import type { McpTimes } from './limits.ts'
import { readTools } from './read-tools.ts'

type Params = CallToolRequest['params']
type Options = Pick<RequestOptions, 'signal' | 'headers'>

const HEADER_MISMATCH = -32_020

/**
 * Sends one `tools/call` request. A stateless server may want arguments repeated in headers (`x-mcp-header` in a tool's
 * schema), which it says by refusing the call: then its tools are read, and the call is sent with them. The library names
 * these headers Mcp-Param-…, so a server cannot choose any other.
 */
export async function sendCall(
  connection: Connection,
  params: Params,
  given: Options,
  times: McpTimes,
): Promise<unknown> {
  const { client, mirrored } = connection
  const options = {
    ...given,
    timeout: times.call,
    resetTimeoutOnProgress: true,
    onprogress: () => {},
    allowInputRequired: true,
  }
  const send = (): Promise<unknown> => {
    const toolDefinition = mirrored.get(params.name)
    return toolDefinition === undefined
      ? client.request({ method: 'tools/call', params }, ANY_RESULT, options)
      : client.callTool(params, { ...options, toolDefinition })
  }
  try {
    return await send()
  } catch (error) {
    if (!connection.isStateless || !(error instanceof ProtocolError) || error.code !== HEADER_MISMATCH) throw error
    await readMirrored(connection, params.name, given.signal, times)
    return send()
  }
}

async function readMirrored(
  connection: Connection,
  name: string,
  signal: AbortSignal | undefined,
  times: McpTimes,
): Promise<void> {
  const { tools } = await readTools(connection, signal, times)
  const tool = tools.find((one) => one.name === name)
  if (tool === undefined) return
  // Without its output schema, which the library would compile.
  connection.mirrored.set(name, { name, inputSchema: { ...tool.inputSchema, type: 'object' } })
}
