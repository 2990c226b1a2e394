import type { Middleware } from 'koa'
import type { Logger } from 'pino'
import { DomainError, type ErrorKind } from '../../domain/errors.ts'

export const statusOf: Record<ErrorKind, number> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  unprocessable: 422,
  too_many: 429,
  bad_gateway: 502,
}

/** A failure on the way to the domain: wrong method, wrong content type, malformed JSON. */
export class RequestError extends Error {
  override name = 'RequestError'
  readonly status: number
  readonly headers: Record<string, string>

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/** The one place that turns an error into an answer. What it does not know is logged and is 500 without a word more. */
export const answerErrors =
  (log: Logger): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const known = describe(error)
      if (known === undefined) {
        log.error({ err: error, requestId: ctx.state.requestId, method: ctx.method, path: ctx.path }, 'request failed')
      } else if (known.status === 503) {
        log.warn({ err: (error as Error).message, requestId: ctx.state.requestId }, 'request turned away')
      }
      const { status, message, headers } = known ?? { status: 500, message: 'Internal server error', headers: {} }
      if (ctx.res.headersSent) {
        ctx.res.destroy()
        return
      }
      ctx.status = status
      ctx.set(headers)
      ctx.body = { error: message }
    }
  }

function describe(error: unknown): { status: number; message: string; headers: Record<string, string> } | undefined {
  if (error instanceof RequestError) return error
  if (error instanceof DomainError) {
    const retryAfter = error.retryAfterSeconds
    const headers: Record<string, string> = retryAfter === undefined ? {} : { 'Retry-After': `${retryAfter}` }
    return { status: statusOf[error.kind], message: error.message, headers }
  }
  if (isOverloaded(error)) return { status: 503, message: OVERLOADED, headers: { 'Retry-After': '2' } }
  if (isAway(error)) return { status: 503, message: AWAY, headers: { 'Retry-After': '2' } }
  return undefined
}

const OVERLOADED = 'The service is too busy; nothing was done, try again'

/** No connection to Postgres came free in time, so nothing was begun: the pool's words, and Prisma's for a transaction. */
const isOverloaded = (error: unknown): boolean =>
  error instanceof Error &&
  /timeout exceeded when trying to connect|Unable to start a transaction in the given time/.test(error.message)

const AWAY =
  'A part of the service does not answer; try again, with the same Idempotency-Key if the request creates something'

/** A connection was lost, or there is none to be had: the words of Postgres as it stops and starts, of its driver, of Prisma and of Node. */
const LOST =
  /Postgres has not answered|Connection terminated|terminating connection|too many clients|database system is|Can't reach database|closed the connection|Socket timeout|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN/

/** Of some errors there is only a code. */
const isAway = (error: unknown): boolean =>
  error instanceof Error && LOST.test(`${(error as NodeJS.ErrnoException).code} ${error.message}`)
