import { ApiError, type Client, createClient } from 'agent-session-client'

export type TokenSource = string | (() => string | Promise<string>) | undefined

/** Sources of the token: they are asked at each request, since a page may set them at any time. */
type Sources = { baseUrl: string; tokenUrl(): string | undefined; token(): TokenSource }

/** Time limit of the page's token endpoint. */
const TOKEN_MS = 30_000

/** Creates a client that gets its token from the page, and asks for another one after a 401. */
export function connect({ baseUrl, tokenUrl, token }: Sources): Client {
  let fetched: { url: string; token: Promise<string> } | undefined
  const fetchOnce = (url: string): Promise<string> => {
    if (fetched?.url === url) return fetched.token
    const current = { url, token: fetchToken(url) }
    fetched = current
    current.token.catch(() => {
      if (fetched === current) fetched = undefined
    })
    return current.token
  }
  return createClient({
    baseUrl,
    token: () => {
      const own = token()
      if (own !== undefined) return typeof own === 'function' ? own() : own
      const url = tokenUrl()
      return url === undefined ? undefined : fetchOnce(url)
    },
    fetch: async (request) => {
      const response = await fetch(request)
      if (response.status === 401) fetched = undefined
      return response
    },
  })
}

/** Reads `{"token": "…"}`, or a text that is the token. */
async function fetchToken(url: string): Promise<string> {
  const response = await fetch(url, {
    credentials: 'same-origin',
    cache: 'no-store',
    headers: { Accept: 'application/json, text/plain' },
    signal: AbortSignal.timeout(TOKEN_MS),
  })
  // An ApiError with a status such as 403 is not tried again.
  if (!response.ok) throw new ApiError(`The page’s token endpoint answered ${response.status}`, response)
  const text = (await response.text()).trim()
  const value: unknown = text.startsWith('{') ? JSON.parse(text).token : text
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value
  throw new ApiError('The page’s token endpoint gave no token', { status: 401, headers: new Headers() })
}
