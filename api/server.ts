import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { prepareAdministrator } from '../domain/auth/administrator.ts'
import { findEnded } from '../domain/auth/caller.ts'
import { preparePasswords } from '../domain/auth/passwords.ts'
import type { Deps, Readiness } from '../domain/deps.ts'
import { createApp } from './app.ts'
import { ARRIVAL_LIMITS } from './http/arrival.ts'
import { createSseStreams, type SseOptions } from './http/sse.ts'

export type ApiOptions = {
  host: string
  port: number
  version: string
  apiPrefix: string
  corsOrigins: string[]
  trustedProxies: number
  readiness: Readiness
  sse: SseOptions
  checkAnswers?: boolean
}

export type RunningApi = { port: number; openStreams(): number; close(): Promise<void> }

/** A request's head has to arrive in this time. */
const HEAD_MS = 15_000
/** Answers under way at shutdown may take this long. */
const DRAIN_MS = 4000
const SWEEP_MS = 50
/** And whoever is told that its request is broken may go on sending for this long. */
const LINGER_MS = 2000

export async function startApi(deps: Deps, options: ApiOptions): Promise<RunningApi> {
  if (deps.auth.hasPasswords) await Promise.all([preparePasswords(), prepareAdministrator(deps)])
  const streams = createSseStreams(options.sse, deps.log, (credentials) => findEnded(deps, credentials))
  const app = createApp(deps, { ...options, streams })
  // Streams and waiting POSTs last as long as they like; a request has to arrive in time. Bodies other than uploads have less.
  const server = createServer(
    { requestTimeout: ARRIVAL_LIMITS.uploadMs + HEAD_MS, headersTimeout: HEAD_MS, keepAliveTimeout: 65_000 },
    app.callback(),
  )
  server.on('clientError', answerBrokenRequest)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    openStreams: () => streams.size,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const ended = streams.close()
      // A connection is kept alive by its client; it goes as soon as its answer has been given.
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
      const forced = Promise.withResolvers<void>()
      const force = setTimeout(() => {
        server.closeAllConnections()
        forced.resolve()
      }, DRAIN_MS)
      await closed
      // One that waits for Postgres to begin has nobody to tell any more.
      await Promise.race([ended, forced.promise])
      clearInterval(sweep)
      clearTimeout(force)
    },
  }
}

const BROKEN_REQUESTS: Record<string, [status: string, sentence: string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The request head is too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request did not arrive in time'],
}

type ParsedSocket = Duplex & { _httpMessage?: unknown; parser?: { incoming?: { complete: boolean } | null } | null }

/** An answer is under way, which is where Node's own handler looks, or it came before all of its request had. */
const hasAnswer = ({ _httpMessage, parser }: ParsedSocket): boolean =>
  _httpMessage != null || parser?.incoming?.complete === false

/** Answered already; each further piece is one more broken request to the parser. */
const lingering = new WeakSet<Duplex>()

/** What is no HTTP never reaches the app; it is told in the same form. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (lingering.has(socket)) return
  const isAnswered = hasAnswer(socket as ParsedSocket)
  if (!socket.writable || isAnswered) return void socket.destroy(error)
  const [status, sentence] = BROKEN_REQUESTS[error.code ?? ''] ?? ['400 Bad Request', 'The request is not valid HTTP']
  const body = JSON.stringify({ error: sentence })
  const head = ['Connection: close', 'Content-Type: application/json; charset=utf-8', `Content-Length: ${body.length}`]
  socket.end(`HTTP/1.1 ${status}\r\n${head.join('\r\n')}\r\n\r\n${body}`)
  // What the client is still sending is thrown away for a while: a connection that is closed over it takes the answer along.
  lingering.add(socket)
  const drop = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(drop))
}
