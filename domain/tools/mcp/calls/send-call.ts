import { type CallToolRequest, ProtocolError, type RequestOptions, type Tool } from '@modelcontextprotocol/client'
import { ANY_RESULT } from '../listing/any-result.ts'
import { readTools } from '../listing/read-tools.ts'
import type { Connection } from '../protocol/connection.ts'
import { readHeaderParams } from '../protocol/header-params.ts'
import type { McpTimes } from '../protocol/limits.ts'

type Params = CallToolRequest['params']
type Options = Pick<RequestOptions, 'signal' | 'headers' | 'onprogress'>

const HEADER_MISMATCH = -32_020

/**
 * Sends one `tools/call` request. A stateless server may want arguments repeated in headers (`x-mcp-header` in a tool's
 * schema). If it refuses a call that lacks them, reads its tools and sends the call with the headers. The library names
 * them Mcp-Param-…, so a server cannot choose others.
 */
export async function sendCall(
  connection: Connection,
  { params, inputSchema }: { params: Params; inputSchema: Record<string, unknown> | undefined },
  given: Options,
  times: McpTimes,
): Promise<unknown> {
  const { client, mirrored } = connection
  if (inputSchema !== undefined && !mirrored.has(params.name) && readHeaderParams(inputSchema) === 'some') {
    mirrored.set(params.name, definitionOf(params.name, inputSchema))
  }
  const options = {
    ...given,
    timeout: times.call,
    resetTimeoutOnProgress: true,
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
  connection.mirrored.set(name, definitionOf(name, tool.inputSchema))
}

/** Defines a tool without its output schema, which the library would compile. */
const definitionOf = (name: string, inputSchema: Record<string, unknown>): Tool => ({
  name,
  inputSchema: { ...inputSchema, type: 'object' },
})
