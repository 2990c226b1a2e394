import type { Context } from 'koa'
import type { TokenResponse } from '../../contract/auth.ts'
import { isLoopback } from '../../lib/loopback.ts'

/**
 * Names of the service's cookies. Scripts cannot read them, and of requests from other sites only followed links carry
 * them.
 */
export const ACCESS_TOKEN = 'access_token'
export const REFRESH_TOKEN = 'refresh_token'
export const ORGANIZATION = 'org_id'
export const OAUTH = 'oauth_sign_in'

/** Lifetime of the organization cookie: about as long as browsers keep any cookie. */
const ORGANIZATION_SECONDS = 365 * 24 * 60 * 60

type Name = typeof ACCESS_TOKEN | typeof REFRESH_TOKEN | typeof ORGANIZATION | typeof OAUTH
export type CookieOptions = { baseUrl: string }

export const readCookie = (ctx: Context, options: CookieOptions, name: Name): string | undefined =>
  ctx.cookies.get(nameOf(name, !isLocal(ctx, options))) || undefined

/**
 * Returns the cookie's name, for OAUTH with the prefix `__Host-`. Without it a page under a sibling domain could plant
 * the state of a sign-in that it began itself; browsers reserve the prefix for the host. The other names are part of
 * the interface.
 */
const nameOf = (name: Name, isSecure: boolean): string => (name === OAUTH && isSecure ? `__Host-${name}` : name)

export function setCookie(ctx: Context, options: CookieOptions, name: Name, value: string, seconds: number): void {
  const secure = !isLocal(ctx, options)
  // Koa decides by the connection, which is plain HTTP behind a proxy.
  ctx.cookies.secure = secure
  ctx.cookies.set(nameOf(name, secure), value, {
    httpOnly: true,
    sameSite: 'lax',
    secure,
    path: '/',
    overwrite: true,
    maxAge: seconds * 1000,
  })
}

export const clearCookie = (ctx: Context, options: CookieOptions, name: Name): void =>
  setCookie(ctx, options, name, '', 0)

/** Clears all that a login has left in the browser. */
export function clearCookies(ctx: Context, options: CookieOptions): void {
  for (const name of [ACCESS_TOKEN, REFRESH_TOKEN, ORGANIZATION] as const) clearCookie(ctx, options, name)
}

export function setLogin(ctx: Context, options: CookieOptions, tokens: TokenResponse, refreshSeconds: number): void {
  setCookie(ctx, options, ACCESS_TOKEN, tokens.access_token, tokens.expires_in)
  setCookie(ctx, options, REFRESH_TOKEN, tokens.refresh_token ?? '', refreshSeconds)
}

/** Keeps the chosen organization until another one is chosen or the login ends. */
export const setOrganization = (ctx: Context, options: CookieOptions, id: string): void =>
  setCookie(ctx, options, ORGANIZATION, id, ORGANIZATION_SECONDS)

/**
 * Reports whether the service is on the browser's own machine. Only there do browsers accept Secure cookies over plain
 * HTTP, and some not even there.
 */
const isLocal = (ctx: Context, { baseUrl }: CookieOptions): boolean =>
  [ctx.hostname, new URL(baseUrl).hostname].every((name) => isLoopback(name) || name.endsWith('.localhost'))
