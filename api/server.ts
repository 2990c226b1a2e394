import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { describeError } from '../contract/errors.ts'
import type { Deps, Readiness } from '../domain/deps.ts'
import { prepareAdministrator } from '../domain/identity/auth/administrator.ts'
import { findEnded } from '../domain/identity/auth/caller.ts'
import { preparePasswords } from '../domain/identity/auth/passwords.ts'
import { type AppOptions, createApp } from './app.ts'
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
  console: AppOptions['console']
  faces: AppOptions['faces']
  logsOrganization?: boolean
  callerLimits?: AppOptions['callerLimits']
  sse: SseOptions
  checkAnswers?: boolean
}

export type RunningApi = { port: number; openStreams(): number; close(): Promise<void> }

/** Time in which a request's head has to arrive. */
const HEAD_MS = 15_000
/** Time that answers in progress have at shutdown. */
const DRAIN_MS = 4000
const SWEEP_MS = 50
/** Time for which the sender of a malformed request may go on sending. */
const LINGER_MS = 2000

export async function startApi(deps: Deps, options: ApiOptions): Promise<RunningApi> {
  if (deps.auth.hasPasswords) await Promise.all([preparePasswords(), prepareAdministrator(deps)])
  const streams = createSseStreams(options.sse, {
    log: deps.log,
    findEnded: (credentials) => findEnded(deps, credentials),
    ownerOf: deps.owners.ownerOf,
  })
  const app = createApp(deps, { ...options, streams })
  // These limit how long a request takes to arrive, not streams or waiting POSTs. Bodies other than uploads have less
  // time.
  const server = createServer(
    {
      requestTimeout: ARRIVAL_LIMITS.uploadMs + HEAD_MS,
      headersTimeout: HEAD_MS,
      keepAliveTimeout: 65_000,
      // The app answers a request without Host in its own format.
      requireHostHeader: false,
    },
    app.callback(),
  )
  server.on('request', noteExchange)
  server.on('clientError', answerBrokenRequest)
  server.on('checkExpectation', (req, res) => {
    noteExchange(req, res)
    refuseExpectation(res)
  })
  server.on('connect', (_, socket) => answerRaw(socket, '405 Method Not Allowed', 'CONNECT is not allowed here'))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  const { port } = server.address() as AddressInfo
  deps.outgoing.ownPorts?.add(port)
  return {
    port,
    openStreams: () => streams.size,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const ended = streams.close()
      // Clients keep idle connections open; each is closed as soon as its answer has been sent.
      const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
      const forced = Promise.withResolvers<void>()
      const force = setTimeout(() => {
        server.closeAllConnections()
        forced.resolve()
      }, DRAIN_MS)
      await closed
      // A stream that is still waiting for Postgres to open has no client left by now.
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

/** Latest request of a connection whose head has come, and its answer. */
type Exchange = { req: IncomingMessage; res: ServerResponse }

const latest = new WeakMap<Duplex, Exchange>()

const noteExchange = (req: IncomingMessage, res: ServerResponse): void => void latest.set(req.socket, { req, res })

/** Reports whether the connection is at this answer, and it has not begun. */
const isUnanswered = ({ req, res }: Exchange): boolean => res.socket === req.socket && !res.headersSent

/**
 * Reports whether an answer is in progress, which is what Node's own handler checks, or was sent before all of its
 * request arrived. An answer to the latest request that has not begun does not count: it can still be replaced.
 */
const hasAnswer = (exchange: Exchange): boolean =>
  !isUnanswered(exchange) && (!exchange.res.writableFinished || !exchange.req.complete)

/** Sockets that have been answered: the parser reports each further piece as another malformed request. */
const lingering = new WeakSet<Duplex>()

/** Answers malformed HTTP, which never reaches the app, in the app's error format. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (lingering.has(socket)) return
  const exchange = latest.get(socket)
  if (exchange !== undefined && isUnanswered(exchange) && exchange.req.complete) {
    // The request before is whole and being handled: its answer is sent, and closes the connection.
    lingering.add(socket)
    exchange.res.shouldKeepAlive = false
    return
  }
  if (!socket.writable || (exchange !== undefined && hasAnswer(exchange))) return void socket.destroy(error)
  // The app's own answer has no way to the client any more.
  if (exchange?.res.socket != null) exchange.res.detachSocket(exchange.res.socket)
  const [status, sentence] = BROKEN_REQUESTS[error.code ?? ''] ?? ['400 Bad Request', 'The request is not valid HTTP']
  answerRaw(socket, status, sentence)
}

const refuseExpectation = (res: ServerResponse): void => {
  const body = JSON.stringify(describeError(417, 'Only 100-continue may be expected'))
  res
    .writeHead(417, {
      Connection: 'close',
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': body.length,
    })
    .end(body)
}

/** Answers without the app, and closes the connection. */
function answerRaw(socket: Duplex, status: string, sentence: string): void {
  const body = JSON.stringify(describeError(Number.parseInt(status, 10), sentence))
  const head = ['Connection: close', 'Content-Type: application/json; charset=utf-8', `Content-Length: ${body.length}`]
  socket.end(`HTTP/1.1 ${status}\r\n${head.join('\r\n')}\r\n\r\n${body}`)
  // Node has taken its own listener off the socket of a CONNECT, and an error without one ends the process.
  socket.on('error', () => socket.destroy())
  // What the client is still sending is discarded for a while: closing the connection over unread data would lose the
  // answer.
  lingering.add(socket)
  socket.resume()
  const drop = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(drop))
}
