import { type Agent, errors, type Response as UndiciResponse, fetch as undiciFetch } from 'undici'
import { boundBody } from './bounded-body.ts'
import { connectionError } from './connection-error.ts'
import { createGuardedAgent, type GuardOptions } from './guarded-agent.ts'
import { OutgoingError } from './outgoing-error.ts'
import { checkAddress, parseUrl } from './outgoing-url.ts'

export type GuardedFetchOptions = GuardOptions & {
  /** Time limit from the call until the head of the answer is there, connecting included. */
  headersTimeoutMs: number
  /** Time that a body may bring nothing while it is read. */
  idleTimeoutMs: number
  /** Size limit of an answer's body after decompression. */
  maxBytes: number
  /** Size limit of a request's body. */
  maxRequestBytes?: number
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

/** More than the model calls that a process makes at once, so that no call waits for the end of another. */
const MAX_SOCKETS_PER_ORIGIN = 256
const KEEP_ALIVE_MS = 30_000
const MAX_KEEP_ALIVE_MS = 60_000

/**
 * Creates a `fetch` for streams and for requests with secrets. Follows no redirect, reaches public addresses only, and
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
  const { signal } = init
  signal?.throwIfAborted()
  const url = parseUrl(addressIn(input))
  checkAddress(options, url)
  const body = checkBody(options, init.body)
  const answer = await send(url, { ...init, body, signal }, agent, options.headersTimeoutMs)
  const problem = problemOf(url, answer)
  if (problem === undefined) return toResponse(answer, options, signal)
  await answer.body?.cancel()
  throw problem
}

function addressIn(input: Input): string {
  if (typeof input === 'string') return input
  if (input instanceof URL) return input.href
  throw new TypeError('A guarded fetch takes a URL, and no Request.')
}

/** Returns a body whose size is known. Others are refused, as undici would not know those of the runtime either. */
function checkBody({ maxRequestBytes = Number.POSITIVE_INFINITY }: GuardedFetchOptions, body: Init['body']) {
  if (body === undefined || body === null) return undefined
  if (!isSized(body)) throw new TypeError('A guarded fetch takes a body of text or bytes.')
  const sizeBytes = typeof body === 'object' && 'byteLength' in body ? body.byteLength : Buffer.byteLength(`${body}`)
  if (sizeBytes <= maxRequestBytes) return body
  throw new OutgoingError('too_large', `The request has ${sizeBytes} bytes; at most ${maxRequestBytes} can be sent.`)
}

const isSized = (body: unknown): body is SizedBody =>
  typeof body === 'string' || body instanceof URLSearchParams || body instanceof ArrayBuffer || ArrayBuffer.isView(body)

type Sent = Pick<Init, 'method' | 'headers' | 'signal'> & { body: SizedBody | undefined }

async function send(url: URL, sent: Sent, dispatcher: Agent, headersTimeoutMs: number): Promise<UndiciResponse> {
  const { method, headers, body, signal } = sent
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(headersTimeout(headersTimeoutMs)), headersTimeoutMs)
  const limited = signal ? AbortSignal.any([signal, late.signal]) : late.signal
  try {
    return await undiciFetch(url, {
      method,
      // The runtime's types of headers differ from undici's. Both are iterables of the same pairs.
      headers: headers === undefined ? undefined : [...new Headers(headers)],
      body,
      signal: limited,
      redirect: 'manual',
      dispatcher,
    })
  } catch (error) {
    limited.throwIfAborted()
    throw sendingError(url, error)
  } finally {
    clearTimeout(timer)
  }
}

const headersTimeout = (headersTimeoutMs: number) =>
  new OutgoingError('timeout', `There was no answer within ${headersTimeoutMs / 1000} s.`, {
    cause: new errors.HeadersTimeoutError(),
  })

/** Converts an error of a request. That of a malformed header quotes it, so it is not kept. */
function sendingError(url: URL, error: unknown): OutgoingError {
  const known = connectionError(url.hostname, error)
  if (known instanceof OutgoingError) return known
  return new OutgoingError('invalid_request', 'The request has a method or a header that cannot be sent.')
}

function problemOf({ host, href }: URL, { status, headers }: UndiciResponse): OutgoingError | undefined {
  const location = headers.get('location')
  if (status >= 300 && status < 400 && location !== null) {
    return new OutgoingError(
      'redirect',
      `The server at ${host} redirects${describeTarget(location, href)}, and redirects are not followed; its URL in the settings should be the final address.`,
    )
  }
  // Unlike undici, the runtime has no responses with other statuses.
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

/** Makes the runtime's response of undici's, from which it differs in its types and in the limits of its body. */
const toResponse = (answer: UndiciResponse, options: GuardedFetchOptions, signal: Init['signal']): Response =>
  new Response(answer.body === null ? null : boundBody(answer.body, options, signal), {
    status: answer.status,
    statusText: answer.statusText.replaceAll(/[^ -~]/g, ''),
    headers: [...answer.headers],
  })
