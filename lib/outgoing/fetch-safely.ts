import { type Dispatcher, fetch, type Response } from 'undici'
import { connectionError } from './connection-error.ts'
import { type GuardOptions, SERVICE_HEADER } from './guard.ts'
import { createGuardedAgent } from './guarded-agent.ts'
import { OutgoingError } from './outgoing-error.ts'
import { checkAddress, parseUrl } from './outgoing-url.ts'

const MiB = 1024 * 1024
const REDIRECTS = [301, 302, 303, 307, 308]

export type OutgoingRequest = {
  method?: string
  headers?: Record<string, string>
  /** Headers that may have secrets: dropped when a redirect leaves the origin of the URL. */
  ownHeaders?: Record<string, string>
  signal?: AbortSignal
  /** Size limit of the body after decompression; the rest is cut off. Default 5 MiB. */
  maxBytes?: number
  /** Limit on the redirects that are followed. Default 5. */
  maxRedirects?: number
  /** Time limit of the whole request, including redirects and body. Default 30 s. */
  timeoutMs?: number
}

/** An answer. `url` is the last one after redirects; `contentType` is the unchanged header, or ''. */
export type OutgoingAnswer = { status: number; url: string; contentType: string; body: Buffer; truncated: boolean }

/**
 * Fetches a URL from an untrusted source. Throws `OutgoingError`, or the signal's reason when `signal` aborts. `headers`
 * are also sent to any host that a redirect names, so they must not contain secrets; `ownHeaders` may.
 */
export async function fetchSafely(
  options: GuardOptions,
  url: string,
  request: OutgoingRequest = {},
): Promise<OutgoingAnswer> {
  const { signal, timeoutMs = 30_000 } = request
  signal?.throwIfAborted()
  const timeout = AbortSignal.timeout(timeoutMs)
  const limited = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
  // One agent per request: nothing is left open, and no connection is shared between tenants.
  const agent = createGuardedAgent(options)
  try {
    return await follow(options, parseUrl(url), { ...request, signal: limited }, agent)
  } catch (error) {
    signal?.throwIfAborted()
    if (!timeout.aborted) throw error
    throw new OutgoingError('timeout', `There was no whole answer within ${timeoutMs / 1000} s.`, { cause: error })
  } finally {
    await agent.destroy()
  }
}

async function follow(
  options: GuardOptions,
  start: URL,
  {
    method: startMethod = 'GET',
    headers = {},
    ownHeaders = {},
    signal,
    maxBytes = 5 * MiB,
    maxRedirects = 5,
  }: OutgoingRequest,
  dispatcher: Dispatcher,
): Promise<OutgoingAnswer> {
  const traceparent = options.traceparent?.()
  const marked = {
    ...headers,
    ...(options.serviceId !== undefined && { [SERVICE_HEADER]: options.serviceId }),
    ...(traceparent !== undefined && { traceparent }),
  }
  let url = start
  let method = startMethod
  let own = ownHeaders
  for (let redirects = 0; ; redirects++) {
    checkAddress(options, url)
    const answer = await send(url, { method, headers: { ...marked, ...own }, signal, dispatcher, redirect: 'manual' })
    const location = answer.headers.get('location')
    if (location === null || !REDIRECTS.includes(answer.status)) return readAnswer(url, answer, maxBytes)
    await answer.body?.cancel()
    if (redirects === maxRedirects) {
      throw new OutgoingError('too_many_redirects', `The address redirects more than ${maxRedirects} times.`)
    }
    const next = parseUrl(location, url)
    if (next.origin !== url.origin) own = {}
    url = next
    if (answer.status === 303 && method !== 'HEAD') method = 'GET'
  }
}

async function send(url: URL, init: Parameters<typeof fetch>[1]): Promise<Response> {
  try {
    return await fetch(url, init)
  } catch (error) {
    throw connectionError(url.hostname, error)
  }
}

async function readAnswer(url: URL, answer: Response, maxBytes: number): Promise<OutgoingAnswer> {
  const { body, truncated } = await readBody(answer, maxBytes)
  return {
    status: answer.status,
    url: url.href,
    contentType: answer.headers.get('content-type') ?? '',
    body,
    truncated,
  }
}

async function readBody(answer: Response, maxBytes: number): Promise<{ body: Buffer; truncated: boolean }> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of answer.body ?? []) {
      chunks.push(chunk)
      length += chunk.length
      if (length > maxBytes) break
    }
  } catch (error) {
    throw new OutgoingError('unreadable', 'The answer broke off or could not be unpacked.', { cause: error })
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), truncated: length > maxBytes }
}
