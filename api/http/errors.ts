import type { Middleware } from 'koa'
import { describeError, type ErrorCode } from '../../contract/errors.ts'
import type { Deps } from '../../domain/deps.ts'
import { DomainError, type ErrorKind } from '../../domain/kit/errors.ts'
import { refersToNothing } from '../../domain/kit/wait-for-locks.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'

const STATUS_OF_KIND: Record<ErrorKind, number> = {
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

/** Failure before the request reaches the domain: wrong method, wrong content type, malformed JSON. */
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

/**
 * Error for an answer that violates the contract. It is thrown in tests, where answers are checked, and reported to the
 * caller.
 */
export class ContractViolation extends Error {
  override name = 'ContractViolation'
}

/**
 * Returns the status that a known error is answered with; undefined for any other, which is answered with 500 or 503.
 */
export const statusOf = (error: unknown): number | undefined => describe(error, undefined)?.status

/** Returns the sentence that a known error is answered with, for answers that are no HTTP errors; otherwise undefined. */
export const sentenceOf = (error: unknown, { unavailability }: Pick<Deps, 'unavailability'>): string | undefined =>
  describe(error, unavailability(error))?.message

/**
 * Turns errors into answers; nothing else does. Unknown errors are logged and answered with 500, without any details.
 */
export const answerErrors =
  ({ log, unavailability }: Pick<Deps, 'log' | 'unavailability'>): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const known = describe(error, unavailability(error))
      if (known === undefined || known.status === 500) {
        log.error({ err: error, requestId: ctx.state.requestId, method: ctx.method, path: ctx.path }, 'request failed')
      } else if (known.status === 503) {
        warnRarely(log, { err: (error as Error).message, requestId: ctx.state.requestId }, 'request turned away')
      }
      const { status, message, code, field, headers }: Described = known ?? INTERNAL
      if (ctx.res.headersSent) {
        ctx.res.destroy()
        return
      }
      for (const header of OF_ANOTHER_BODY) ctx.remove(header)
      ctx.status = status
      ctx.set(headers)
      const described = describeError(status, message, code, field)
      const inForm = ctx.state.errorForm as ErrorForm | undefined
      if (inForm !== undefined && isFinal(status)) ctx.set('X-Should-Retry', 'false')
      ctx.body = inForm === undefined ? described : inForm(status, described)
    }
  }

/** Makes the body of an error in the form of another protocol. A handler puts it into `ctx.state.errorForm`. */
export type ErrorForm = (status: number, error: ReturnType<typeof describeError>) => unknown

/** Reports whether a stock client must not repeat the request by itself. After a 429 it may, when Retry-After says. */
const isFinal = (status: number): boolean => status < 500 && status !== 429

/** Headers removed from an error's answer: a handler may have set them for a body that it then could not send. */
const OF_ANOTHER_BODY = [
  'Content-Type',
  'Content-Length',
  'Content-Disposition',
  'Content-Range',
  'Accept-Ranges',
  'ETag',
  'Cache-Control',
]

type Described = {
  status: number
  message: string
  code?: ErrorCode
  field?: string | undefined
  headers: Record<string, string>
}

const INTERNAL: Described = { status: 500, message: 'Internal server error', headers: {} }

function describe(error: unknown, unavailability: ReturnType<Deps['unavailability']>): Described | undefined {
  if (error instanceof RequestError) return error
  if (error instanceof ContractViolation) return { status: 500, message: error.message, headers: {} }
  if (error instanceof DomainError) {
    const retryAfter = error.retryAfterSeconds
    const headers: Record<string, string> = retryAfter === undefined ? {} : { 'Retry-After': `${retryAfter}` }
    const { kind, message, code, field } = error
    return { status: STATUS_OF_KIND[kind], message, code, field, headers }
  }
  if (refersToNothing(error)) return { status: 409, message: GONE, headers: {} }
  if (unavailability === undefined) return undefined
  const headers = { 'Retry-After': '2' }
  return unavailability === 'overloaded'
    ? { status: 503, message: OVERLOADED, code: 'overloaded', headers }
    : { status: 503, message: AWAY, headers }
}

const GONE = 'Something that the request refers to was deleted meanwhile; look again'
const OVERLOADED = 'The service is too busy; nothing was done, try again'
const AWAY =
  'A part of the service does not answer; try again, with the same Idempotency-Key if the request creates something'
