/**
 * Bearer token, or a function that returns it, called before each request. An error that it throws counts as a network
 * failure, so the request is repeated, unless it is an ApiError with a lasting status such as 401. For undefined the
 * request has no Authorization.
 */
export type Token = string | (() => string | undefined | Promise<string | undefined>)

export type ClientOptions = {
  /** Address of the service: everything before `/v1`, including any prefix of the path. */
  baseUrl: string
  /** Access token or API key. */
  token?: Token
  /** Replaces the global fetch. It is called with a Request. */
  fetch?: (request: Request) => Promise<Response>
  /** Headers of every request, such as X-Org-Id. */
  headers?: Record<string, string>
  /** Silence after which a stream's connection counts as dead, in ms. Default: 45 s; heartbeats come every 30 s. */
  silenceMs?: number
}

export type Connection = {
  send(request: Request): Promise<Response>
  request(path: string, init: RequestInit): Request
  silenceMs: number | undefined
}

/** Creates the sender of requests with the client's headers and token. After a 401 it calls a token function again. */
export function createConnection(options: ClientOptions): Connection {
  const { token, headers = {}, fetch = globalThis.fetch } = options
  const baseUrl = options.baseUrl.replace(/\/+$/, '')
  if (!/^https?:\/\//i.test(baseUrl)) {
    throw new TypeError(`baseUrl: must begin with http:// or https://, as in http://localhost:9300; it is "${baseUrl}"`)
  }
  if (/\/v1$/.test(baseUrl)) {
    throw new TypeError(`baseUrl: must not end with /v1, which the client adds; give ${baseUrl.slice(0, -3)}`)
  }
  // Throws for an invalid address or header, which retrying cannot fix.
  new Request(`${baseUrl}/v1`, { headers })
  const sendWithToken = async (request: Request): Promise<Response> => {
    const value = typeof token === 'function' ? await token() : token
    if (value !== undefined) request.headers.set('Authorization', `Bearer ${value}`)
    return fetch(request)
  }
  return {
    send: async (request) => {
      if (typeof token !== 'function') return sendWithToken(request)
      const response = await sendWithToken(request.clone())
      if (response.status !== 401) return response
      await response.body?.cancel()
      return sendWithToken(request)
    },
    request: (path, init) => new Request(baseUrl + path, { ...init, headers: { ...headers, ...init.headers } }),
    silenceMs: options.silenceMs,
  }
}
