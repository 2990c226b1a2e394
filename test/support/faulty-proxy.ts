import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { addressOf, headersOf, type Target } from './http.ts'

/** Faults of one request. */
export type Fault =
  /** It is answered by the proxy, and does not reach the service. */
  | { status: number; retryAfter?: number }
  /** After so many bytes of the answer's body the connection is cut, or ended as if it were all. -1 cuts the head, too. */
  | { after: number; how: 'cut' | 'end' }
  /** Text that comes before the answer's body. */
  | { before: string }

export type Exchange = { method: string; path: string; headers: IncomingMessage['headers'] }

export type FaultyProxy = {
  target: Target
  /** All requests received, in order. */
  exchanges: Exchange[]
  /** Number of answers that are being sent. */
  readonly open: number
  close(): Promise<void>
}

/**
 * Starts an HTTP proxy to a service that `spoil` chooses the faults of. On connections that say `close`, Node's fetch
 * takes an answer that was cut for a whole one.
 */
export async function startFaultyProxy(
  target: Target,
  spoil: (exchange: Exchange, number: number) => Fault | undefined,
  connection: 'close' | 'keep-alive' = 'close',
): Promise<FaultyProxy> {
  const exchanges: Exchange[] = []
  const open = new Set<ServerResponse>()
  const server = createServer((asked, answer) => {
    const exchange = { method: asked.method ?? '', path: asked.url ?? '', headers: asked.headers }
    const fault = spoil(exchange, exchanges.push(exchange) - 1)
    // On a connection that is used again, an answer might be destroyed before it is the connection's turn, and never close.
    answer.setHeader('Connection', connection)
    open.add(answer)
    answer.on('close', () => open.delete(answer))
    if (fault && 'status' in fault) {
      const header = fault.retryAfter === undefined ? {} : { 'Retry-After': String(fault.retryAfter) }
      asked.resume()
      answer.writeHead(fault.status, { 'Content-Type': 'application/json', 'X-Request-Id': 'of-the-proxy', ...header })
      answer.end('{"error":"Not now."}')
      return
    }
    pass(target, asked, answer, fault)
  })
  // Longer than any client keeps a connection, so that none is closed while a request is on its way.
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    target: { url: `http://127.0.0.1:${port}`, headers: headersOf(target) },
    exchanges,
    get open() {
      return open.size
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

type PassedFault = Exclude<Fault, { status: number }> | undefined

function pass(target: Target, asked: IncomingMessage, answer: ServerResponse, fault: PassedFault): void {
  const { host: _, ...headers } = asked.headers
  const options = { method: asked.method, headers, agent: false }
  const sent = request(addressOf(target) + asked.url, options, (given) => {
    let left = fault && 'after' in fault ? fault.after : Number.POSITIVE_INFINITY
    if (left < 0) return void answer.destroy()
    const { 'content-length': __, connection: ___, ...kept } = given.headers
    answer.writeHead(given.statusCode ?? 500, kept)
    if (fault && 'before' in fault) answer.write(fault.before)
    given.on('data', (chunk: Buffer) => {
      const part = chunk.subarray(0, left)
      left -= part.length
      answer.write(part, () => {
        if (left === 0 && fault && 'how' in fault && fault.how === 'cut') answer.destroy()
      })
      if (left === 0 && fault && 'how' in fault && fault.how === 'end') answer.end()
      if (left === 0) given.destroy()
    })
    // An answer that came at once ends after it was cut.
    given.on('end', () => left > 0 && answer.end())
    given.on('error', () => answer.destroy())
  })
  sent.on('error', () => answer.destroy())
  answer.on('close', () => sent.destroy())
  asked.pipe(sent)
}
