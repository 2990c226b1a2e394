import type { Agent } from 'undici'
import { exchange, type Head } from './exchange.ts'
import { type GuardOptions, SERVICE_HEADER } from './guard.ts'
import { createGuardedAgent } from './guarded-agent.ts'
import { OutgoingError } from './outgoing-error.ts'
import { checkAddress, parseUrl } from './outgoing-url.ts'

export type GuardedFetchOptions = GuardOptions & {
  /** Time limit from the call until the head of the answer has arrived, including connecting. */
  headersTimeoutMs: number
  /** Time that a body may bring nothing while it is read. */
  idleTimeoutMs: number
  /** Size limit of an answer's body after decompression. */
  maxBytes: number
  /** Size limit of a request's body. */
  maxRequestBytes?: number
  /**
   * Longest time in ms that the bytes of a body wait for others, so that many small pieces cost little. 0 by default.
   */
  joinMs?: number
  /** Number of connections to one origin; further requests wait for the end of others. 256 by default. */
  maxSocketsPerOrigin?: number
}

export type GuardedFetch = {
  fetch: typeof globalThis.fetch
  /** Ends all requests and closes all connections. */
  close(): Promise<void>
}

type Input = Parameters<typeof globalThis.fetch>[0]
type Init = NonNullable<Parameters<typeof globalThis.fetch>[1]>
type SizedBody = string | URLSearchParams | ArrayBuffer | Uint8Array<ArrayBuffer>

const MAX_SOCKETS_PER_ORIGIN = 256
/** Many servers, of Node and uvicorn for example, close a connection after 5 s, and a request on its way fails then. */
const KEEP_ALIVE_MS = 3000
const MAX_KEEP_ALIVE_MS = 60_000

/**
 * Creates a `fetch` for streams and for requests with secrets. Follows no redirect, reaches allowed addresses only, and
 * throws `OutgoingError`, or the signal's reason. Connections are kept for later requests, but never shared with another
 * guarded fetch.
 */
export function createGuardedFetch(given: GuardedFetchOptions): GuardedFetch {
  // A copy, because connections that were opened under other options must not be used again.
  const options = { ...given }
  const agent = createGuardedAgent(options, {
    bodyTimeout: options.idleTimeoutMs,
    // Replaced by a time limit that includes waiting, resolving and connecting.
    headersTimeout: 0,
    connections: options.maxSocketsPerOrigin ?? MAX_SOCKETS_PER_ORIGIN,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
    // In HTTP/1.1 aborting a request ends its connection, and no other request is on it.
    allowH2: false,
  })
  return { fetch: (input, init = {}) => request(options, agent, input, init), close: () => agent.destroy() }
}

async function request(options: GuardedFetchOptions, agent: Agent, input: Input, init: Init): Promise<Response> {
  const { signal, method = 'GET' } = init
  signal?.throwIfAborted()
  const url = parseUrl(addressIn(input))
  checkAddress(options, url)
  const body = checkBody(options, init.body)
  const sent = { url, method: method.toUpperCase(), headers: headersOf(options, init), body: toBytes(body), signal }
  return exchange(agent, sent, { joinMs: 0, ...options }, (head) => problemOf(url, head))
}

/** Headers that `fetch` would send as well, without deflate: some servers send it in a form of their own. */
const USUAL_HEADERS = { accept: '*/*', 'accept-encoding': 'gzip, br', 'user-agent': 'undici' }

/** Returns the headers to send. The error of a malformed header quotes it, so it is not kept. */
function headersOf({ serviceId, traceparent }: GuardOptions, { headers: given, body }: Init): Headers {
  try {
    const headers = new Headers(given)
    for (const [name, value] of Object.entries(USUAL_HEADERS)) if (!headers.has(name)) headers.set(name, value)
    if (body instanceof URLSearchParams && !headers.has('content-type')) headers.set('content-type', FORM)
    if (serviceId !== undefined) headers.set(SERVICE_HEADER, serviceId)
    const place = traceparent?.()
    if (place !== undefined && !headers.has('traceparent')) headers.set('traceparent', place)
    return headers
  } catch {
    throw new OutgoingError('invalid_request', 'The request has a method or a header that cannot be sent.')
  }
}

const FORM = 'application/x-www-form-urlencoded;charset=UTF-8'

function addressIn(input: Input): string {
  if (typeof input === 'string') return input
  if (input instanceof URL) return input.href
  throw new TypeError('A guarded fetch takes a URL, and no Request.')
}

/** Returns a body whose size is known. Others are refused: undici does not recognize the runtime's own body classes. */
function checkBody({ maxRequestBytes = Number.POSITIVE_INFINITY }: GuardedFetchOptions, body: Init['body']) {
  if (body === undefined || body === null) return undefined
  if (!isSized(body)) throw new TypeError('A guarded fetch takes a body of text or bytes.')
  const sizeBytes = typeof body === 'object' && 'byteLength' in body ? body.byteLength : Buffer.byteLength(`${body}`)
  if (sizeBytes <= maxRequestBytes) return body
  throw new OutgoingError('too_large', `The request has ${sizeBytes} bytes; at most ${maxRequestBytes} can be sent.`)
}

const isSized = (body: unknown): body is SizedBody =>
  typeof body === 'string' || body instanceof URLSearchParams || body instanceof ArrayBuffer || ArrayBuffer.isView(body)

function toBytes(body: SizedBody | undefined): string | Uint8Array | undefined {
  if (body instanceof URLSearchParams) return `${body}`
  return body instanceof ArrayBuffer ? new Uint8Array(body) : body
}

function problemOf({ host, href }: URL, { status, headers }: Head): OutgoingError | undefined {
  const location = headers.get('location')
  if (status >= 300 && status < 400 && location !== null) {
    return new OutgoingError(
      'redirect',
      `The server at ${host} redirects${describeTarget(location, href)}, and redirects are not followed; its URL in the settings should be the final address.`,
    )
  }
  // The runtime has no responses with other statuses.
  if (status >= 200 && status <= 599) return undefined
  return new OutgoingError('unreadable', `The answer has the status ${status}, which does not exist.`)
}

const MAX_TARGET_LENGTH = 200

/** Describes a redirect's target. Leaves out credentials, the query, which may have a key in it, and long addresses. */
function describeTarget(location: string, base: string): string {
  const url = URL.parse(location, base)
  if (url === null || url.username !== '' || url.password !== '' || !/^https?:$/.test(url.protocol)) return ''
  const target = `${url.origin}${url.pathname}`
  return target.length > MAX_TARGET_LENGTH ? '' : ` to ${target}`
}
