export type OutgoingReason =
  | 'invalid_url'
  | 'private_address'
  | 'unknown_host'
  | 'unreachable'
  | 'unreadable'
  | 'too_many_redirects'
  | 'redirect'
  | 'too_large'
  | 'invalid_request'
  | 'timeout'

/** Error of a request that was not made or had no usable answer. The message is fit for a user and for a model. */
export class OutgoingError extends Error {
  override name = 'OutgoingError'
  readonly reason: OutgoingReason

  constructor(reason: OutgoingReason, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.reason = reason
  }
}
