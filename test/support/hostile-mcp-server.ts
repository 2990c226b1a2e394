import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { isRecord } from '../../lib/is-record.ts'

type Message = { id?: string | number; method?: string; params: Record<string, unknown>; result?: unknown }

/** Request of a client, and ways to answer it rightly and wrongly. */
export type Received = Message & {
  httpMethod: string
  headers: IncomingHttpHeaders
  response: ServerResponse
  /** Whether the client has ended the request. */
  ended: Promise<void>
  reply(result: unknown): void
  fail(code: number, message: string, data?: unknown): void
  status(status: number, body?: string, headers?: Record<string, string>): void
  /** Begins a stream of events, and returns how to send one. */
  stream(): (message: unknown) => void
}

export type HostileServer = {
  url: string
  port: number
  received: Received[]
  /** Answers to requests, by the method of the message or of HTTP. Other requests are answered properly. */
  answers: Record<string, (request: Received) => void>
  /** Messages received so far, with a method. */
  of(method: string): Received[]
  stop(): Promise<void>
}

const SESSION = 'session-1'

/**
 * Starts an MCP server with sessions, as before 2026-07-28, that answers as a test says, within the protocol or against
 * it.
 */
export async function startHostileServer(): Promise<HostileServer> {
  const received: Received[] = []
  const answers: HostileServer['answers'] = {}
  const server = createServer(async (request, response) => {
    const one = receive(request, response, request.method === 'POST' ? await text(request) : '')
    received.push(one)
    const { method = one.result === undefined ? '' : 'answer', httpMethod } = one
    const answer = answers[httpMethod === 'POST' ? method : httpMethod] ?? properly[method] ?? properly[httpMethod]
    answer?.(one)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    received,
    answers,
    of: (method) => received.filter((one) => one.method === method),
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function receive(request: IncomingMessage, response: ServerResponse, body: string): Received {
  const parsed: unknown = body === '' ? {} : JSON.parse(body)
  const message = isRecord(parsed) ? parsed : {}
  const status: Received['status'] = (code, content = '', headers = {}) =>
    response.writeHead(code, { 'content-type': 'text/html', ...headers }).end(content)
  const send = (value: unknown, headers = {}) =>
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
  const { id } = message as Message
  return {
    ...(message as Message),
    params: isRecord(message.params) ? message.params : {},
    httpMethod: request.method ?? '',
    headers: request.headers,
    response,
    ended: new Promise((resolve) => response.once('close', () => resolve())),
    reply: (result) =>
      send({ jsonrpc: '2.0', id, result }, message.method === 'initialize' ? { 'mcp-session-id': SESSION } : {}),
    fail: (code, words, data) => send({ jsonrpc: '2.0', id, error: { code, message: words, data } }),
    status,
    stream: () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      return (event) => response.write(`data: ${JSON.stringify(event)}\n\n`)
    },
  }
}

const properly: Record<string, (request: Received) => void> = {
  initialize: ({ params, reply }) =>
    reply({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'hostile', version: '1' },
    }),
  'tools/list': ({ reply }) => reply({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
  'tools/call': ({ params, reply }) => reply({ content: [{ type: 'text', text: JSON.stringify(params.arguments) }] }),
  'server/discover': ({ fail }) => fail(-32_601, 'Method not found'),
  GET: ({ status }) => status(405),
  DELETE: ({ status }) => status(200),
  POST: ({ status }) => status(202),
}
