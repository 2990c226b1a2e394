import { randomBytes } from 'node:crypto'
import { PATIENCE_MS } from './http.ts'

/** Public base URL of the service under test. The test browser sends requests for it to the service's actual port. */
export const BASE_URL = 'http://localhost:9300'
export const callbackOf = (provider: string): string => `${BASE_URL}/v1/auth/callback/${provider}`

export type Page = { url: string; status: number; location: string | undefined; text: string; setCookies: string[] }

/** Browser with its own client address. It keeps cookies and does not follow redirects by itself. */
export type Browser = {
  cookies: Map<string, string>
  open(url: string): Promise<Page>
  submit(url: string, form: Record<string, string>): Promise<Page>
  /** Follows redirects from a page until one points to a URL that starts with `stop`, which it does not open. */
  followTo(page: Page, stop: string): Promise<{ page: Page; reached: string | undefined }>
}

const MAX_REDIRECTS = 20

export function createBrowser(service: { url: string }): Browser {
  const cookies = new Map<string, string>()
  const address = `10.${randomBytes(3).join('.')}`
  const send = async (url: string, body?: URLSearchParams): Promise<Page> => {
    const isService = url.startsWith(BASE_URL)
    const answer = await fetch(isService ? service.url + url.slice(BASE_URL.length) : url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(isService && { 'X-Forwarded-For': address }),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...(body === undefined ? {} : { body }),
    })
    const setCookies = answer.headers.getSetCookie()
    for (const cookie of setCookies) keep(cookies, cookie)
    const location = answer.headers.get('location')
    const next = location === null ? undefined : new URL(location, url).href
    return { url, status: answer.status, location: next, text: await answer.text(), setCookies }
  }
  const open = (url: string) => send(url)
  return {
    cookies,
    open,
    submit: (url, form) => send(url, new URLSearchParams(form)),
    followTo: async (start, stop) => {
      let page = start
      for (let redirects = 0; page.location !== undefined; redirects++) {
        if (page.location.startsWith(stop)) return { page, reached: page.location }
        if (redirects === MAX_REDIRECTS) throw new Error(`too many redirects, at last to ${page.location}`)
        page = await open(page.location)
      }
      return { page, reached: undefined }
    },
  }
}

/** Stores a cookie, or removes it if it has expired. Paths are ignored because no two cookies here share a name. */
function keep(cookies: Map<string, string>, setCookie: string): void {
  const [pair = '', ...attributes] = setCookie.split('; ')
  const name = pair.slice(0, pair.indexOf('='))
  const expires = attributes.find((attribute) => /^expires=/i.test(attribute))?.slice('expires='.length)
  const hasEnded = expires !== undefined && Date.parse(expires) <= Date.now()
  if (hasEnded) cookies.delete(name)
  else cookies.set(name, pair.slice(name.length + 1))
}

/** Starts a sign-in at the service. Returns the page that redirects to the provider. */
export const beginSignIn = (browser: Browser, provider: string, returnTo?: string): Promise<Page> =>
  browser.open(
    `${BASE_URL}/v1/auth/oauth/${provider}${returnTo === undefined ? '' : `?${new URLSearchParams({ return_to: returnTo })}`}`,
  )

/** Query parameters of the redirect to the provider. */
export const parametersOf = (page: Page): Record<string, string> =>
  Object.fromEntries(new URL(page.location ?? '').searchParams)

/** Returns the callback URL for a sign-in that has begun, by default with an arbitrary code. */
export function callbackFor(provider: string, begun: Page, code = 'any-code'): string {
  const { state = '' } = parametersOf(begun)
  return `${callbackOf(provider)}?${new URLSearchParams({ code, state })}`
}

/** Status and error sentence of a failed request. */
export function errorOf(page: Page): { status: number; error: string } {
  return { status: page.status, error: JSON.parse(page.text).error }
}
