import type { Context } from 'koa'
import type { Endpoint } from '../../contract/kit/endpoint.ts'
import { OrganizationId } from '../../contract/kit/ids.ts'
import type { Deps } from '../../domain/deps.ts'
import {
  anonymousCaller,
  type Caller,
  type Credential,
  findEnded,
  identify,
  type Wanted,
} from '../../domain/identity/auth/caller.ts'
import type { AuthSettings } from '../../domain/identity/auth/settings.ts'
import type { Login } from '../../domain/identity/auth/tokens.ts'
import { forbidden, invalid, notFound } from '../../domain/kit/errors.ts'
import { DEFAULT_ORGANIZATION_UUID } from '../../domain/kit/ids.ts'
import { RequestError } from '../http/errors.ts'
import { ACCESS_TOKEN, ORGANIZATION, REFRESH_TOKEN, readCookie } from './cookies.ts'
import { originOf } from './origin.ts'
import { allows } from './scopes.ts'

/**
 * Returns the caller, or undefined for a `public` or `login` endpoint. Throws 401 or 403 for a caller who may not use
 * it.
 */
export type Authenticate = (ctx: Context, endpoint: Endpoint) => Promise<Caller | undefined>

/** Creates the first step of every request: it identifies the caller and checks that they may use the endpoint. */
export function createAuthenticate(deps: Deps): Authenticate {
  return async (ctx, endpoint) => {
    if (endpoint.access === 'public') return undefined
    if (endpoint.access === 'login') return requireLogin(deps, ctx)
    const choice = wanted(deps, ctx, endpoint)
    const caller = deps.auth.mode === 'none' ? await anonymousCaller(deps, choice) : await signedIn(deps, ctx, choice)
    if (choice.problem !== undefined && caller.actor.apiKeyId === null) throw choice.problem
    authorize(caller, endpoint)
    return { ...caller, actor: { ...caller.actor, origin: originOf(ctx) } }
  }
}

/** Requires any token of a login, even an expired one, or an API key, which is a credential without a login. */
async function requireLogin(deps: Deps, ctx: Context): Promise<undefined> {
  if (deps.auth.mode === 'none') return
  const { isCookie, logins } = await presentedLogins(deps, ctx)
  const presented = presentedCredential(deps, ctx)
  const isKnown = logins.length > 0 || (presented && (await identify(deps, presented.text, ANY_ORGANIZATION)))
  if (!isKnown) throw authenticationRequired()
  if (isCookie) requireKnownOrigin(ctx, deps.auth)
}

const ANY_ORGANIZATION: Wanted = { organizationId: undefined, isStrict: false }

/** Returns the logins of the presented tokens, valid or not: those in the header, otherwise those in the cookies. */
export async function presentedLogins(deps: Deps, ctx: Context): Promise<{ isCookie: boolean; logins: Login[] }> {
  const { auth } = deps
  const presented = presentedCredential(deps, ctx)
  const isCookie = presented === undefined || presented.isCookie
  const texts = isCookie ? [presented?.text, readCookie(ctx, auth, REFRESH_TOKEN)] : [presented.text]
  const logins = await Promise.all(texts.map((text) => text && auth.tokens.readAny(text)))
  return { isCookie, logins: logins.filter((login) => typeof login === 'object') }
}

async function signedIn(deps: Deps, ctx: Context, choice: Wanted): Promise<Caller> {
  const presented = presentedCredential(deps, ctx)
  const caller = presented && (await identify(deps, presented.text, choice))
  if (presented === undefined || caller === undefined) throw authenticationRequired()
  if (presented.isCookie) requireKnownOrigin(ctx, deps.auth)
  return caller
}

export const authenticationRequired = () =>
  new RequestError(401, 'Authentication required', { 'WWW-Authenticate': 'Bearer' })

/** Throws 401 if a credential has ended, for a request that has waited. */
export async function requireLiving(deps: Deps, credential: Credential | undefined): Promise<void> {
  if (credential !== undefined && (await findEnded(deps, [credential])).size > 0) throw authenticationRequired()
}

/**
 * Returns the presented credential; the header takes precedence over the cookie. `Bearer`, `ApiKey` and no scheme at
 * all mean the same.
 */
export function presentedCredential(deps: Deps, ctx: Context): { text: string; isCookie: boolean } | undefined {
  const header = ctx.get('Authorization').trim()
  if (header !== '') return { text: header.replace(/^(Bearer|ApiKey) +/i, ''), isCookie: false }
  const cookie = readCookie(ctx, deps.auth, ACCESS_TOKEN)
  return cookie === undefined ? undefined : { text: cookie, isCookie: true }
}

/**
 * Throws 403 for a change that comes with cookies from an origin that is neither the service's own nor listed: a browser
 * sends cookies with requests of any page.
 */
export function requireKnownOrigin(ctx: Context, { baseUrl, pageOrigins }: AuthSettings): void {
  if (!isWrite(ctx)) return
  const own = [new URL(baseUrl).origin, `${ctx.protocol}://${ctx.host}`]
  if ([...own, ...pageOrigins].includes(ctx.get('Origin'))) return
  throw new RequestError(
    403,
    "With cookies this needs an Origin header with the service's own origin or one of CORS_ALLOWED_ORIGINS; or send a token",
  )
}

export const isWrite = (ctx: Context): boolean => !['GET', 'HEAD', 'OPTIONS'].includes(ctx.method)

type Choice = Wanted & { problem?: Error }

/**
 * Returns the organization named by the header, otherwise by the cookie of switch-org. A problem is returned and not
 * thrown, because only authenticated callers may see it.
 */
function wanted(deps: Deps, ctx: Context, endpoint: Endpoint): Choice {
  const header = ctx.get('X-Org-Id')
  // A stale cookie must not keep its owner from choosing another organization.
  const isStrict = endpoint.access !== 'user' || header !== ''
  const id = header || readCookie(ctx, deps.auth, ORGANIZATION)
  if (id === undefined) return { organizationId: undefined, isStrict }
  const { data: organizationId } = OrganizationId.safeParse(id)
  if (organizationId !== undefined) return { organizationId, isStrict }
  const none = { organizationId: undefined, isStrict }
  if (header !== '') return { ...none, problem: invalid('X-Org-Id: must be org_ followed by 32 lower-case hex digits') }
  return isStrict ? { ...none, problem: notFound('Organization') } : none
}

function authorize({ actor, credential }: Caller, endpoint: Endpoint): void {
  const { access } = endpoint
  if (credential !== undefined && !allows(credential.scopes, endpoint)) {
    throw forbidden(`The API key's scopes do not allow this; it would need ${endpoint.tag}:${need(endpoint)}`)
  }
  if (endpoint.login && actor.apiKeyId !== null) throw forbidden('This cannot be done with an API key; sign in')
  if ((access === 'admin' || access === 'operator') && actor.role === 'member') {
    throw forbidden('Only owners and administrators of the organization may do this')
  }
  if (access === 'operator' && actor.organizationId !== DEFAULT_ORGANIZATION_UUID) {
    throw forbidden('Only owners and administrators of the default organization may do this')
  }
}

const need = ({ method }: Endpoint): string => (method === 'GET' ? 'read' : 'write')
