import type { Middleware } from 'koa'
import type { Tracing } from '../../domain/kit/tracing.ts'
import { describeRequest, isProbe } from './log-requests.ts'

/** Runs each request in a span, which ends when its answer has been sent or broken off. Probes have none. */
export const traceRequests =
  (tracing: Tracing): Middleware =>
  (ctx, next) => {
    const { method } = ctx
    const { requestId } = ctx.state
    const span = tracing.receive({ method, traceparent: ctx.get('traceparent'), requestId })
    if (span === undefined) return next()
    ctx.res.once('close', () => {
      const answer = describeRequest(ctx)
      if (!isProbe(answer.route)) span.end(answer)
    })
    return span.within(next)
  }
