import type { Context, Middleware } from 'koa'
import type { Deps } from '../../../domain/deps.ts'
import type { AuthSettings } from '../../../domain/identity/auth/settings.ts'
import { RequestError } from '../../http/errors.ts'

const METADATA = '/.well-known/oauth-protected-resource'

/**
 * Describes /v1/mcp by RFC 9728. It names no authorization server, because the service accepts only its own tokens and
 * keys, and gives them to nobody by OAuth.
 */
export const describeResource = (ctx: Context, auth: Pick<AuthSettings, 'baseUrl'>, path: string) => ({
  resource: originOf(ctx, auth) + path,
  resource_name: 'Agents',
  bearer_methods_supported: ['header'],
})

/** Tells clients that are not authenticated where the description is. */
export const challenge =
  ({ auth }: Pick<Deps, 'auth'>): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      if (!(error instanceof RequestError) || error.status !== 401) throw error
      const described = `${originOf(ctx, auth)}${METADATA}${pathOf(ctx)}`
      const headers = { ...error.headers, 'WWW-Authenticate': `Bearer resource_metadata="${described}"` }
      throw new RequestError(401, error.message, headers)
    }
  }

/** Returns the origin at which the client reaches the service. A proxy with TLS may be in front of the configured one. */
function originOf(ctx: Context, { baseUrl }: Pick<AuthSettings, 'baseUrl'>): string {
  const base = new URL(baseUrl)
  const used = URL.parse(`${ctx.protocol}://${ctx.host}`)
  return used === null || used.host === base.host ? base.origin : used.origin
}

/** Returns the path as it was requested, before a leading /api was removed. */
const pathOf = ({ originalUrl, path }: Context): string => URL.parse(originalUrl, 'http://localhost')?.pathname ?? path
