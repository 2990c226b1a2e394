import type { Context } from 'koa'
import { authEndpoints, type TokenResponse } from '../../contract/auth.ts'
import type { Deps } from '../../domain/deps.ts'
import { createApiKey, listApiKeys, presentCreatedKey, revokeApiKey } from '../../domain/identity/auth/api-keys.ts'
import { endLogin, logIn, refresh, register } from '../../domain/identity/auth/log-in.ts'
import { presentAuthConfig } from '../../domain/identity/auth/settings.ts'
import { finishSignIn, startSignIn } from '../../domain/identity/auth/sign-in.ts'
import { getCurrentUser } from '../../domain/identity/users.ts'
import { unauthenticated } from '../../domain/kit/errors.ts'
import { presentedLogins, requireKnownOrigin } from '../auth/authenticate.ts'
import {
  clearCookie,
  clearCookies,
  OAUTH,
  ORGANIZATION,
  REFRESH_TOKEN,
  readCookie,
  setCookie,
  setLogin,
} from '../auth/cookies.ts'
import { originOf } from '../auth/origin.ts'
import { createLimit } from '../auth/rate-limit.ts'
import { checkScopes } from '../auth/scopes.ts'
import { type Handle, NOT_STORED, reply } from '../http/handle.ts'

export function authRoutes(handle: Handle, deps: Deps): void {
  const { auth } = deps
  const limits = {
    login: createLimit(deps, 'login', 10),
    register: createLimit(deps, 'register', 5),
    refresh: createLimit(deps, 'refresh', 30),
    startOauth: createLimit(deps, 'oauth-start', 30),
    finishOauth: createLimit(deps, 'oauth-finish', 30),
  }
  /** Sets the cookies of a new login, which begins in the user's first organization. */
  const begin = (ctx: Context, tokens: TokenResponse): TokenResponse => {
    clearCookie(ctx, auth, ORGANIZATION)
    setLogin(ctx, auth, tokens, auth.tokens.refreshSeconds)
    return tokens
  }

  handle(authEndpoints.config, async () => reply(200, presentAuthConfig(auth)))
  handle(
    authEndpoints.login,
    async ({ ctx, body }) => {
      return reply(200, begin(ctx, await logIn(deps, body, originOf(ctx))), NOT_STORED)
    },
    limits.login,
  )
  handle(
    authEndpoints.register,
    async ({ ctx, body }) => {
      return reply(201, begin(ctx, await register(deps, body, originOf(ctx))), NOT_STORED)
    },
    limits.register,
  )
  handle(
    authEndpoints.refresh,
    async ({ ctx, body }) => {
      const cookie = body.refresh_token == null ? readCookie(ctx, auth, REFRESH_TOKEN) : undefined
      if (cookie !== undefined) requireKnownOrigin(ctx, auth)
      const token = body.refresh_token ?? cookie
      if (token === undefined) throw unauthenticated('refresh_token: is required, in the body or as a cookie')
      const tokens = await refresh(deps, token, originOf(ctx))
      setLogin(ctx, auth, tokens, auth.tokens.refreshSeconds)
      return reply(200, tokens, NOT_STORED)
    },
    limits.refresh,
  )
  handle(authEndpoints.logout, async ({ ctx }) => {
    const { logins } = await presentedLogins(deps, ctx)
    for (const login of logins) await endLogin(deps, login, originOf(ctx))
    clearCookies(ctx, auth)
    return reply(204, undefined)
  })
  handle(authEndpoints.me, async ({ actor }) => reply(200, await getCurrentUser(deps, actor)))

  handle(
    authEndpoints.startOauth,
    async ({ ctx, params, query }) => {
      const { location, state, lifetimeSeconds } = await startSignIn(deps, params.provider, query.return_to)
      setCookie(ctx, auth, OAUTH, state, lifetimeSeconds)
      return reply(302, undefined, { Location: location, ...NOT_STORED })
    },
    limits.startOauth,
  )
  handle(
    authEndpoints.finishOauth,
    async ({ ctx, params }) => {
      const state = readCookie(ctx, auth, OAUTH)
      clearCookie(ctx, auth, OAUTH)
      const answer = { state, query: ctx.querystring, origin: originOf(ctx) }
      const { tokens, location } = await finishSignIn(deps, params.provider, answer)
      begin(ctx, tokens)
      return reply(302, undefined, { Location: location, ...NOT_STORED })
    },
    limits.finishOauth,
  )

  handle(authEndpoints.listApiKeys, async ({ actor }) => reply(200, { data: await listApiKeys(deps, actor) }))
  handle(authEndpoints.createApiKey, async ({ actor, credential, body, once }) => {
    checkScopes(body.scopes ?? [])
    // The answer stored for repetitions of the request does not contain the key.
    const made = await once((attempt) => createApiKey(deps, actor, body, { ...attempt, loginId: credential?.id }))
    return reply(201, presentCreatedKey(deps, made), NOT_STORED)
  })
  handle(authEndpoints.revokeApiKey, async ({ actor, params }) => {
    await revokeApiKey(deps, actor, params.key_id)
    return reply(204, undefined)
  })
}
