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

/** A caller's mistake or a limit. The message is a sentence that the caller can act on; it is sent as it is. */
export class DomainError extends Error {
  override name = 'DomainError'
  readonly kind: ErrorKind
  readonly retryAfterSeconds: number | undefined

  constructor(kind: ErrorKind, message: string, options: { retryAfterSeconds?: number } = {}) {
    super(message)
    this.kind = kind
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

export const invalid = (message: string) => new DomainError('invalid', message)
/** The same words for a missing thing and for another organization's. */
export const notFound = (thing: string) => new DomainError('not_found', `${thing} not found`)
export const unauthenticated = (message: string) => new DomainError('unauthenticated', message)
export const forbidden = (message: string) => new DomainError('forbidden', message)
/** Somebody whom the service asked failed. */
export const badGateway = (message: string) => new DomainError('bad_gateway', message)
export const conflict = (message: string) => new DomainError('conflict', message)
export const tooMany = (message: string, retryAfterSeconds: number) =>
  new DomainError('too_many', message, { retryAfterSeconds })
