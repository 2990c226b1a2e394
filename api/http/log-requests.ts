import type { Context, Middleware } from 'koa'
import type { Logger } from 'pino'
import { elapsedMs } from '../../lib/elapsed-ms.ts'
import { inLogContext } from '../../lib/log-context.ts'

/** Whether a route is for probes, which come every few seconds and say nothing. */
export const isProbe = (route: string | null): boolean => /^\/health(\/|$)/.test(route ?? '')

/**
 * Logs one line for each request when its answer has been sent, or broken off: method, route (not the path, which has
 * ids), status and time in ms. A stream's line comes at its end. All lines of a request have its id.
 */
export const logRequests =
  (log: Logger, { withOrganization }: { withOrganization: boolean }): Middleware =>
  (ctx, next) => {
    const startedAt = performance.now()
    ctx.res.once('close', () => {
      const described = describeRequest(ctx)
      const fields = { ...described, ms: elapsedMs(startedAt), requestId: ctx.state.requestId }
      const organization = withOrganization ? { organization: ctx.state.organization } : {}
      const level = ctx.status === 500 ? 'error' : isProbe(described.route) ? 'debug' : 'info'
      log[level]({ ...fields, ...organization }, 'request')
    })
    return inLogContext({ requestId: ctx.state.requestId }, next)
  }

/**
 * Describes a request that is over. Its path is left out: without a route it may be anything, even malformed, on which
 * Koa throws.
 */
export function describeRequest(ctx: Context): {
  method: string
  route: string | null
  status: number
  aborted?: true
} {
  // The router notes the route's pattern.
  const { _matchedRoute: route } = ctx as { _matchedRoute?: unknown }
  const { method, status } = ctx
  return {
    ...{ method, route: typeof route === 'string' ? route : null, status },
    ...(!ctx.res.writableFinished && { aborted: true }),
  }
}
