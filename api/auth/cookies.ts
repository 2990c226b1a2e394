import type { Context } from 'koa'
import type { TokenResponse } from '../../contract/auth.ts'
import { isLoopback } from '../../lib/loopback.ts'

/** What a browser keeps for the service. Scripts see none of it, and of other sites only a link here carries it along. */
export const ACCESS_TOKEN = 'access_token'
export const REFRESH_TOKEN = 'refresh_token'
export const ORGANIZATION = 'org_id'
export const OAUTH = 'oauth_sign_in'

/** As long as browsers keep a cookie. */
const ORGANIZATION_SECONDS = 365 * 24 * 60 * 60

type Name = typeof ACCESS_TOKEN | typeof REFRESH_TOKEN | typeof ORGANIZATION | typeof OAUTH
export type CookieOptions = { baseUrl: string }

export const readCookie = (ctx: Context, options: CookieOptions, name: Name): string | undefined =>
  ctx.cookies.get(nameOf(name, !isLocal(ctx, options))) || undefined

/**
 * A neighbour's page under the same domain could plant the sign-in that it has begun itself; browsers keep it from names
 * with this prefix. The others are the interface's.
 */
const nameOf = (name: Name, isSecure: boolean): string => (name === OAUTH && isSecure ? `__Host-${name}` : name)

export function setCookie(ctx: Context, options: CookieOptions, name: Name, value: string, seconds: number): void {
  const secure = !isLocal(ctx, options)
  // Koa goes by the connection, which is plain behind a proxy.
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

export function setLogin(ctx: Context, options: CookieOptions, tokens: TokenResponse, refreshSeconds: number): void {
  setCookie(ctx, options, ACCESS_TOKEN, tokens.access_token, tokens.expires_in)
  setCookie(ctx, options, REFRESH_TOKEN, tokens.refresh_token ?? '', refreshSeconds)
}

/** Until another one is chosen, or the login ends. */
export const setOrganization = (ctx: Context, options: CookieOptions, id: string): void =>
  setCookie(ctx, options, ORGANIZATION, id, ORGANIZATION_SECONDS)

/** Browsers take Secure cookies over plain HTTP from their own machine only, and some not even then. */
const isLocal = (ctx: Context, { baseUrl }: CookieOptions): boolean =>
  [ctx.hostname, new URL(baseUrl).hostname].every((name) => isLoopback(name) || name.endsWith('.localhost'))
