import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as WebStream } from 'node:stream/web'
import { createMcpHandler, fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server'

export type StatelessServer = {
  url: string
  received: { method: string; headers: IncomingHttpHeaders; params: Record<string, unknown> }[]
  /** Number of calls of the tool "slow" whose clients have gone. */
  aborted: () => number
  /** Tells those who listen that the tools have changed. */
  changeTools(): void
  closeConnections(): void
  stop(): Promise<void>
}

const NAME = { type: 'object' as const, properties: { name: { type: 'string' as const } }, required: ['name'] }
const REGION = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }

/** Starts a server of the stateless protocol, by the official library. It refuses the sessions of before. */
export async function startStatelessServer(host = '127.0.0.1'): Promise<StatelessServer> {
  const received: StatelessServer['received'] = []
  let aborted = 0
  const handler = createMcpHandler(() => withTools(() => aborted++), { legacy: 'reject' })
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    const { method, params } = body.length === 0 ? {} : JSON.parse(body.toString())
    received.push({ method: method ?? request.method, headers: request.headers, params })
    await answer(handler.fetch, request, body, response)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    received,
    aborted: () => aborted,
    changeTools: () => handler.notify.toolsChanged(),
    closeConnections: () => server.closeAllConnections(),
    stop: async () => {
      await handler.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function answer(
  fetch: (request: Request) => Promise<Response>,
  { method, url, headers }: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const pairs = Object.entries(headers).map(([name, value]): [string, string] => [name, `${value}`])
  const address = new URL(url ?? '', 'http://127.0.0.1')
  const content = method === 'POST' ? new Uint8Array(body) : null
  const result = await fetch(new Request(address, { method, headers: pairs, body: content, signal: gone.signal }))
  response.writeHead(result.status, [...result.headers].flat())
  if (result.body === null) response.end()
  else await pipeline(Readable.fromWeb(result.body as WebStream), response).catch(() => {})
}

function withTools(onAborted: () => void): McpServer {
  const server = new McpServer(
    { name: 'stateless', version: '1' },
    { capabilities: { tools: { listChanged: true } }, instructions: 'Long ones.' },
  )
  server.registerResource('note', 'demo:note', {}, async ({ href }) => ({ contents: [{ uri: href, text: 'A note.' }] }))
  server.registerPrompt('ask', {}, () =>
    inputRequired({ inputRequests: { who: inputRequired.elicit({ message: 'Who?', requestedSchema: NAME }) } }),
  )
  const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
  server.registerTool('echo', { inputSchema: fromJsonSchema(NAME) }, (args) => text(JSON.stringify(args)))
  server.registerTool('slow', {}, async ({ mcpReq }) => {
    await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve))
    onAborted()
    return text('too late')
  })
  server.registerTool('ask', {}, ({ mcpReq }) => {
    const state = mcpReq.requestState<string>()
    if (state !== undefined) return text(JSON.stringify([state, mcpReq.inputResponses]))
    return inputRequired({
      inputRequests: {
        who: inputRequired.elicit({ message: 'Who?', requestedSchema: NAME }),
        pay: inputRequired.elicitUrl({ message: 'Pay', url: 'https://shop.example/pay' }),
      },
      requestState: 'stäte "1"',
    })
  })
  server.registerTool('put-off', {}, ({ mcpReq }) => {
    const state = Number(mcpReq.requestState<string>() ?? 0)
    return state === 3 ? text('now') : inputRequired({ requestState: `${state + 1}` })
  })
  server.registerTool('sample', {}, () =>
    inputRequired({ inputRequests: { a: inputRequired.createMessage({ messages: [], maxTokens: 1 }) } }),
  )
  server.registerTool('regional', { inputSchema: fromJsonSchema(REGION) }, (args) => text(JSON.stringify(args)))
  return server
}
