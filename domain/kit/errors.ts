import type { ErrorCode } from '../../contract/errors.ts'

export type ErrorKind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'too_large'
  | 'unprocessable'
  | 'too_many'
  | 'bad_gateway'

/** A caller's mistake or an exceeded limit. The message is sent unchanged, so it must be a sentence to act on. */
export class DomainError extends Error {
  override name = 'DomainError'
  readonly kind: ErrorKind
  /** More specific than the kind. */
  readonly code: ErrorCode
  /** Field at fault, if the sentence does not begin with it. */
  readonly field: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(
    kind: ErrorKind,
    message: string,
    options: { code?: ErrorCode; field?: string; retryAfterSeconds?: number } = {},
  ) {
    super(message)
    this.kind = kind
    this.code = options.code ?? kind
    this.field = options.field
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** Adapts a sentence to follow a field's name: a lower-case first letter, no full stop. */
export const afterField = (sentence: string): string =>
  sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '')

export const invalid = (message: string) => new DomainError('invalid', message)
/** Reports a missing object, in the same words as an object of another organization. */
export const notFound = (thing: string) => new DomainError('not_found', `${thing} not found`)
export const noSession = () => new DomainError('not_found', 'Session not found', { field: 'session_id' })
export const unauthenticated = (message: string) => new DomainError('unauthenticated', message)
export const forbidden = (message: string) => new DomainError('forbidden', message)
/** Reports the failure of another service that this one called. */
export const badGateway = (message: string, field?: string) =>
  new DomainError('bad_gateway', message, field === undefined ? {} : { field })
export const conflict = (message: string, code?: ErrorCode) => new DomainError('conflict', message, code && { code })
export const quotaExceeded = (message: string) => conflict(message, 'quota_exceeded')
export const tooMany = (message: string, retryAfterSeconds: number) =>
  new DomainError('too_many', message, { retryAfterSeconds })

/** Waits for a change that somebody else may have made already: the thing is no longer there then. */
export const unlessGone = (change: Promise<void>): Promise<void> =>
  change.catch((error: unknown) => {
    if (!(error instanceof DomainError) || error.code !== 'not_found') throw error
  })
