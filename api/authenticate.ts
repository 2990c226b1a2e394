import type { Middleware } from 'koa'
import type { Scope } from '../domain/deps.ts'
import { ANONYMOUS_USER_UUID, DEFAULT_ORGANIZATION_UUID } from '../domain/ids.ts'

/** Mode none: every request is the anonymous administrator of the default organization. */
export const authenticate = (): Middleware => (ctx, next) => {
  const scope: Scope = { organizationId: DEFAULT_ORGANIZATION_UUID, userId: ANONYMOUS_USER_UUID }
  ctx.state.scope = scope
  return next()
}
